package prom

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/config"
)

// Where a canary's own address may lead, under which list.
func TestGuard(t *testing.T) {
	for _, tc := range []struct {
		host    string
		allowed []string
		ip      string
		ok      bool
	}{
		{"prom.example", nil, "203.0.113.7", true},
		{"prom.example", nil, "10.1.2.3", true},
		{"prom.example", nil, "127.0.0.1", false},
		{"prom.example", nil, "127.8.9.1", false},
		{"prom.example", nil, "::1", false},
		{"prom.example", nil, "::ffff:127.0.0.1", false},
		{"prom.example", nil, "64:ff9b::7f00:1", false},
		{"prom.example", nil, "64:ff9b::a9fe:a9fe", false},
		{"prom.example", nil, "64:ff9b::a01:203", true},
		{"prom.example", nil, "0.0.0.0", false},
		{"prom.example", nil, "0.1.2.3", false},
		{"prom.example", nil, "::", false},
		{"prom.example", nil, "169.254.169.254", false},
		{"prom.example", nil, "fe80::1", false},
		{"prom.example", nil, "fe80::1%eth0", false},
		{"prom.example", nil, "fd00:ec2::254", false},
		{"prom.example", nil, "168.63.129.16", false},
		{"prom.example", nil, "100.100.100.200", false},
		{"prom.example", nil, "224.0.0.1", false},
		{"localhost", []string{"localhost"}, "127.0.0.1", false}, // a name is no network
		{"127.0.0.1", []string{"127.0.0.0/8"}, "127.0.0.1", true},
		{"prom.example", []string{"127.0.0.0/8"}, "127.3.2.1", true},
		{"prom.example", []string{"127.0.0.0/8"}, "10.0.0.1", false},
		{"prom.example", []string{"10.0.0.0/8"}, "::ffff:10.0.0.1", true},
		{"a.monitoring.svc", []string{"*.monitoring.svc"}, "10.0.0.1", true},
		{"A.Monitoring.svc.", []string{"*.monitoring.svc"}, "10.0.0.1", true},
		{"a.monitoring.svc", []string{"*.monitoring.svc"}, "169.254.169.254", false},
		{"monitoring.svc.evil.example", []string{"*.monitoring.svc"}, "10.0.0.1", false},
		{"evil.example", []string{"*.monitoring.svc", "192.0.2.0/24"}, "10.0.0.1", false},
		{"evil.example", []string{"*.monitoring.svc", "192.0.2.0/24"}, "192.0.2.9", true},
	} {
		g := newGuard(&url.URL{Host: tc.host}, tc.allowed)
		if err := g.address(netip.MustParseAddr(tc.ip)); (err == nil) != tc.ok {
			t.Errorf("%s at %s under %v: %v, want allowed = %v", tc.host, tc.ip, tc.allowed, err, tc.ok)
		}
		g.free = true
		if err := g.address(netip.MustParseAddr(tc.ip)); err != nil {
			t.Errorf("the operator's own address %s: %v", tc.ip, err)
		}
	}
}

// The rule holds where the connection is made: the server is never reached, under whatever name.
func TestLoopbackIsOutOfReach(t *testing.T) {
	reached := false
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer s.Close()
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	for _, host := range []string{"127.0.0.1", "localhost", "127.1", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		sample := takeOne(t, config.Default(), request("http://"+host+port), nil)
		if len(sample.Answers) != 1 || sample.Answers[0].Error == "" {
			t.Errorf("%s: %+v", host, sample)
		}
		if host == "127.0.0.1" && !strings.Contains(sample.Answers[0].Error, "allowedServerAddresses") {
			t.Errorf("%s: no way out in %q", host, sample.Answers[0].Error)
		}
	}
	if reached {
		t.Error("a canary reached the manager's own machine")
	}
	// The counter-proof: the same address as the operator's own binding is reached.
	settings := config.Default()
	settings.MetricProviders = map[string]config.MetricProvider{"here": {ServerAddress: s.URL}}
	r := request("")
	r.Source = &v1beta1.AnalysisPrometheus{ProviderRef: &v1beta1.AnalysisProviderRef{Name: "here"}}
	takeOne(t, settings, r, nil)
	if !reached {
		t.Error("the operator's own server is out of reach too")
	}
}
