package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"ome.io/ome/internal/core/config"
)

// Where metric providers are bound. The second place is an older one and counts only while the
// first is absent.
const (
	keyProviders       = "metricProviders"
	keyLegacyProviders = "autoscalerPolicy"
)

// providers reads the bindings one by one: a broken one keeps its last good form or is unbound,
// and the others work on.
func (p *parser) providers(data map[string]string) {
	key, path, bindings := keyProviders, "", map[string]any(nil)
	raw, ok := data[keyProviders]
	var err error
	switch legacy := data[keyLegacyProviders]; {
	case ok && strings.TrimSpace(raw) != "":
		bindings, err = decodeObject(raw)
	case !ok && strings.TrimSpace(legacy) != "":
		key, path = keyLegacyProviders, keyProviders
		bindings, err = legacyProviders(legacy)
	}
	if err != nil {
		p.problem(key, path, "%v", err)
		p.out.MetricProviders = p.fallback.MetricProviders
		return
	}
	for _, name := range slices.Sorted(maps.Keys(bindings)) {
		bound, err := provider(bindings[name])
		if err != nil {
			known, ok := p.fallback.MetricProviders[name]
			using := p.using
			if !ok {
				p.using = "the provider is unbound"
			}
			p.problem(key, strings.TrimPrefix(path+"."+name, "."), "%v", err)
			p.using = using
			if !ok {
				continue
			}
			bound = known
		}
		if p.out.MetricProviders == nil {
			p.out.MetricProviders = map[string]config.MetricProvider{}
		}
		p.out.MetricProviders[name] = bound
	}
}

func legacyProviders(raw string) (map[string]any, error) {
	root, err := decodeObject(raw)
	if err != nil {
		return nil, err
	}
	switch bindings := root[keyProviders].(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return bindings, nil
	}
	return nil, errors.New("must be a JSON object")
}

func provider(v any) (config.MetricProvider, error) {
	var out config.MetricProvider
	raw, err := json.Marshal(v)
	if err != nil {
		return out, err
	}
	if _, ok := v.(map[string]any); !ok {
		return out, errors.New(`must be a JSON object with serverAddress`)
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return out, fmt.Errorf("%s: must have the form {serverAddress, authSecretRef: {name, key}, headers}", show(v))
	}
	u, err := url.Parse(out.ServerAddress)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return out, fmt.Errorf("serverAddress %q: must be a URL such as http://prometheus.monitoring.svc:9090", out.ServerAddress)
	}
	if ref := out.AuthSecretRef; ref != nil && (ref.Name == "" || ref.Key == "") {
		return out, errors.New("authSecretRef: needs both name and key")
	}
	return out, nil
}
