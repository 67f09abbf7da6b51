package cli

import (
	"regexp"
	"strconv"
	"strings"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/guarded"
	"ome.io/ome/internal/view"
)

// Errors of the command line of wait.
const (
	msgWaitPredicate = "InvalidWaitPredicate: require condition=Ready[=True|False|Unknown], rollout=stable|failed|rolled-back, migration=terminal, replicas=ready|current, runtime-sync=acknowledged, or held-revision=unheld"
	msgWaitMigration = "InvalidMigrationRequestID: require canonical UUID only with migration=terminal"
	msgWaitSync      = "InvalidRuntimeSyncRequestID: require canonical v4 UUID with runtime-sync=acknowledged"
	msgWaitReady     = "InvalidReadyReplicaFlags: require --component=engine|decoder|router and --replicas=N only with replicas=ready; N must be nonnegative"
	msgWaitCurrent   = "InvalidCurrentReplicaFlags: require --component=engine|decoder|router and positive --replicas=N; --ir-name and --ir-uid must be paired"
	msgWaitHeld      = "InvalidHeldRevisionTarget: require --component, full --revision, --ir-name and --ir-uid only with held-revision=unheld"
	msgWaitTimeout   = "InvalidWaitTimeout: require positive duration no greater than 24h"
	msgWaitOutput    = "InvalidOutputFormat: supported table, wide, json, yaml"
)

// predicates are the spellings of --for.
var predicates = map[string]view.WaitPredicate{
	"condition=Ready":           {Family: view.WaitReady, Want: "True"},
	"condition=Ready=True":      {Family: view.WaitReady, Want: "True"},
	"condition=Ready=False":     {Family: view.WaitReady, Want: "False"},
	"condition=Ready=Unknown":   {Family: view.WaitReady, Want: "Unknown"},
	"rollout=stable":            {Family: view.WaitRollout, Want: "stable"},
	"rollout=failed":            {Family: view.WaitRollout, Want: "failed"},
	"rollout=rolled-back":       {Family: view.WaitRollout, Want: "rolled-back"},
	"rollout=paused":            {Family: view.WaitRollout, Want: "paused"},
	"migration=terminal":        {Family: view.WaitMigration},
	"replicas=ready":            {Family: view.WaitReplicaReady},
	"replicas=current":          {Family: view.WaitReplicaCount},
	"runtime-sync=acknowledged": {Family: view.WaitRuntimeSync},
	"held-revision=unheld":      {Family: view.WaitHeld},
}

// parse checks the flags against the predicate: each takes its own and no others.
func (f *waitFlags) parse(service string) (*view.WaitPredicate, guarded.Output, error) {
	p, ok := predicates[f.predicate]
	if !ok {
		return nil, "", guarded.Usage(msgWaitPredicate, "got "+guarded.Quote(guarded.Clean(f.predicate)), "rollout=paused is another: a canary that waits at a gate, or a pause")
	}
	if message := f.foreign(p.Family); message != "" {
		return nil, "", guarded.Usage(message, "a flag is set that --for="+f.predicate+" doesn't take")
	}
	component, componentErr := parseComponent(f.component)
	p.Component = component
	switch p.Family {
	case view.WaitMigration:
		if !isUUID(f.requestID, false) {
			return nil, "", guarded.Usage(msgWaitMigration, "got --request-id "+guarded.Quote(guarded.Clean(f.requestID)))
		}
	case view.WaitRuntimeSync:
		if !isUUID(f.requestID, true) {
			return nil, "", guarded.Usage(msgWaitSync, "got --request-id "+guarded.Quote(guarded.Clean(f.requestID)))
		}
	case view.WaitReplicaReady, view.WaitReplicaCount:
		n, plain := parseCount(f.replicas)
		message := msgWaitReady
		if p.Family == view.WaitReplicaCount {
			message = msgWaitCurrent
			plain = plain && n > 0 && (f.irName == "") == (f.irUID == "") && (f.irName == "" || named(f.irName, f.irUID))
		}
		if componentErr != nil || !plain {
			return nil, "", guarded.Usage(message)
		}
		p.Replicas = n
	case view.WaitHeld:
		if componentErr != nil || !view.IsRevision(v1beta1.ReplicaName(service, component), f.revision) || !named(f.irName, f.irUID) {
			return nil, "", guarded.Usage(msgWaitHeld, "a full revision is SERVICE-COMPONENT- and eight lowercase hexadecimal digits",
				"names and UIDs are in: kubectl ome instance retry-blocks "+service+" --component "+guarded.ShellQuote(guarded.Clean(f.component))+" -o json")
		}
	}
	p.RequestID, p.Revision, p.ReplicaIs, p.ReplicaUID = f.requestID, f.revision, f.irName, f.irUID
	if f.timeout <= 0 || f.timeout > maxWaitTimeout {
		return nil, "", guarded.Usage(msgWaitTimeout, "got "+f.timeout.String())
	}
	format, err := guarded.ParseOutput(f.output)
	if err != nil {
		return nil, "", guarded.Usage(msgWaitOutput, "got "+guarded.Quote(guarded.Clean(f.output)))
	}
	return &p, format, nil
}

// foreign is the error of a flag that belongs to another predicate; empty for none.
func (f *waitFlags) foreign(family view.WaitFamily) string {
	is := func(families ...view.WaitFamily) bool {
		for _, one := range families {
			if family == one {
				return true
			}
		}
		return false
	}
	set := func(name string) bool { return f.cmd.Flags().Changed(name) }
	switch {
	case set("request-id") && !is(view.WaitMigration, view.WaitRuntimeSync):
		return msgWaitMigration
	case set("revision") && !is(view.WaitHeld):
		return msgWaitHeld
	case set("replicas") && !is(view.WaitReplicaReady, view.WaitReplicaCount):
		if is(view.WaitHeld) {
			return msgWaitHeld
		}
		return msgWaitReady
	case set("component") && !is(view.WaitReplicaReady, view.WaitReplicaCount, view.WaitHeld):
		return msgWaitReady
	case (set("ir-name") || set("ir-uid")) && !is(view.WaitReplicaCount, view.WaitHeld):
		if is(view.WaitReplicaReady) {
			return msgWaitReady
		}
		return msgWaitCurrent
	}
	return ""
}

// parseCount reads a plain decimal number that fits a replica count.
func parseCount(s string) (int32, bool) {
	n, err := strconv.ParseInt(s, 10, 32)
	return int32(n), err == nil && n >= 0 && strconv.FormatInt(n, 10) == s
}

func named(name, uid string) bool {
	return guarded.ValidateName(name) == nil && uid != "" && !guarded.Unsafe(uid) && !strings.ContainsAny(uid, " \t")
}

var uuid = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-([0-9a-f])[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// isUUID is true for the canonical spelling, of version 4 if asked.
func isUUID(s string, v4 bool) bool {
	m := uuid.FindStringSubmatch(s)
	return m != nil && (!v4 || m[1] == "4" && strings.ContainsRune("89ab", rune(s[19])))
}

func itoa(n int) string { return strconv.Itoa(n) }
