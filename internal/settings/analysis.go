package settings

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"time"
)

// analysisFields tune the analysis of canaries.
var analysisFields = []field{
	newField("canaryAnalysis", "bundledPrometheusAddress", func(s *settingsT) *string { return &s.CanaryAnalysis.BundledPrometheusAddress }, orOff(addressOrNone)),
	newField("canaryAnalysis", "defaultProvider", func(s *settingsT) *string { return &s.CanaryAnalysis.DefaultProvider }, orOff(text)),
	newField("canaryAnalysis", "queryTimeout", func(s *settingsT) *time.Duration { return &s.CanaryAnalysis.QueryTimeout }, positive),
	newField("canaryAnalysis", "maxConcurrency", func(s *settingsT) *int32 { return &s.CanaryAnalysis.MaxConcurrency }, count(1, 1000)),
	newField("canaryAnalysis", "cacheTTL", func(s *settingsT) *time.Duration { return &s.CanaryAnalysis.CacheTTL }, positive),
	newField("canaryAnalysis", "allowedServerAddresses", func(s *settingsT) *[]string { return &s.CanaryAnalysis.AllowedServerAddresses }, orOff(hosts)),
}

func text(v any) (string, error) {
	s, ok := v.(string)
	if !ok {
		return "", errors.New("must be a text")
	}
	return s, nil
}

// addressOrNone reads the base URL of a server; the empty text is none.
func addressOrNone(v any) (string, error) {
	s, err := text(v)
	if err != nil || s == "" {
		return "", err
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("must be a URL such as http://prometheus.monitoring.svc:9090")
	}
	return s, nil
}

// hosts reads a list of host patterns and networks.
func hosts(v any) ([]string, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, errors.New(`must be a list such as ["*.monitoring.svc", "10.0.0.0/8"]`)
	}
	var out []string
	for _, e := range list {
		s, _ := e.(string)
		if _, err := netip.ParsePrefix(s); err != nil {
			if _, err := path.Match(s, ""); err != nil || s == "" || path.Base(s) != s {
				return nil, fmt.Errorf(`%s is neither a host pattern such as "*.monitoring.svc" nor a network such as "10.0.0.0/8"`, show(e))
			}
		}
		out = append(out, s)
	}
	return out, nil
}
