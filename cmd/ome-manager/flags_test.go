package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"ome.io/ome/internal/controller"
)

func TestFlagErrors(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"unknown":         {[]string{"--wrokers=1"}, "unknown flag: --wrokers"},
		"argument":        {[]string{"run"}, `unexpected argument "run": ome-manager takes flags only`},
		"workers":         {[]string{"--workers=0"}, "--workers=0: must be at least 1"},
		"qps alone":       {[]string{"--kube-api-qps=20"}, "--kube-api-qps=20 needs --kube-api-burst of at least 1"},
		"no requests":     {[]string{"--kube-api-qps=0"}, "--kube-api-qps=0 would send nothing; use -1 for no limit"},
		"lease":           {[]string{"--leader-elect-lease-duration=5s"}, "--leader-elect-lease-duration=5s must be above --leader-elect-renew-deadline=10s, and that above 1.2 times --leader-elect-retry-period=2s"},
		"retry":           {[]string{"--leader-elect-retry-period=9s"}, "1.2 times --leader-elect-retry-period=9s"},
		"level":           {[]string{"--log-level=loud"}, `--log-level="loud": must be debug, info, warn or error`},
		"format":          {[]string{"--log-format=xml"}, `--log-format="xml": must be json or text`},
		"empty namespace": {[]string{"--ome-namespace="}, "--ome-namespace is empty; name the namespace of the manager"},
		"crash":           {[]string{"--lab-crash=after:pods:1"}, "--lab-crash: \"after:pods:1\": unknown kind of write"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := run(context.Background(), test.args, &out, &errs); code != 2 {
				t.Errorf("exit code %d, want 2", code)
			}
			if !strings.Contains(errs.String(), test.want) {
				t.Errorf("stderr %q lacks %q", errs.String(), test.want)
			}
			if out.Len() > 0 {
				t.Errorf("stdout %q", out.String())
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	o, err := parse(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if o.namespace != "ome" || o.leaderNamespace != "ome" || !o.leaderElect || o.leaderID != "ome-manager" ||
		o.lease != 15*time.Second || o.qps != -1 || o.webhookPort != 9443 || !o.webhookRotate || o.skipDrain || o.skipPairing || o.crash != nil {
		t.Errorf("defaults: %+v", *o)
	}
	t.Setenv("POD_NAMESPACE", "elsewhere")
	if o, err = parse([]string{"--lab-crash=before:pod-gate:2", "--lab-skip-pairing"}, io.Discard); err != nil {
		t.Fatal(err)
	}
	if !o.skipPairing || o.skipDrain {
		t.Errorf("--lab-skip-pairing: skipPairing %t, skipDrain %t", o.skipPairing, o.skipDrain)
	}
	if o.namespace != "elsewhere" || o.leaderNamespace != "elsewhere" {
		t.Errorf("namespace %q, lease in %q", o.namespace, o.leaderNamespace)
	}
	if want := (controller.Crash{Kind: controller.WritePodGate, N: 2}); o.crash == nil || *o.crash != want {
		t.Errorf("crash %v, want %v", o.crash, want)
	}
}

// TestHelp: what only the lab uses isn't shown, and what is shown has a text.
func TestHelp(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(context.Background(), []string{"--help"}, &out, &errs); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if strings.Contains(errs.String(), "--lab-") || !strings.Contains(errs.String(), "--webhook-cert-dir") {
		t.Errorf("help:\n%s", errs.String())
	}
}

func TestVersion(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(context.Background(), []string{"--version"}, &out, &errs); code != 0 || !strings.HasPrefix(out.String(), "ome-manager ") || strings.TrimSpace(out.String()) == "ome-manager" {
		t.Errorf("exit code %d, %q", code, out.String())
	}
}
