package controller

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"ome.io/ome/internal/core/config"
	"ome.io/ome/internal/metrics"
	"ome.io/ome/internal/settings"
)

// operatorSettings are the settings in force, read again when their ConfigMap changed.
type operatorSettings struct {
	key types.NamespacedName

	mu       sync.Mutex
	seen     *corev1.ConfigMap
	read     bool
	inForce  config.Settings
	problems []string
	// told are the settings without effect that events told of.
	told map[string]bool
}

// get returns the settings in force, and what is wrong with those that were set.
func (o *operatorSettings) get(s stores) (config.Settings, []string) {
	cm, _ := getAs[*corev1.ConfigMap](s[kindConfigMap], o.key.String())
	o.mu.Lock()
	defer o.mu.Unlock()
	// Objects in the cache are replaced, never changed.
	if !o.read || o.seen != cm {
		set, problems := parseSettings(cm)
		o.inForce, o.problems = set, nil
		for _, p := range problems {
			o.problems = append(o.problems, p.Error())
		}
		o.seen, o.read = cm, true
	}
	return o.inForce, o.problems
}

// tellUnused tells once of each setting that has no effect.
func (o *operatorSettings) tellUnused(recorder events.EventRecorder, cm *corev1.ConfigMap) {
	now := map[string]bool{}
	var fresh []string
	o.mu.Lock()
	for _, p := range settings.Unused(cm.Data) {
		text := p.Error()
		if now[text] = true; !o.told[text] {
			fresh = append(fresh, text)
		}
	}
	o.told = now
	o.mu.Unlock()
	for _, text := range fresh {
		recorder.Eventf(cm, nil, corev1.EventTypeWarning, "SettingNotUsed", "Read", "%s", text)
	}
}

func parseSettings(cm *corev1.ConfigMap) (config.Settings, []settings.Problem) {
	if cm == nil {
		return config.Default(), nil
	}
	var lastGood *config.Settings
	if text := cm.Annotations[settings.LastGoodAnnotation]; text != "" {
		if known, err := settings.Decode(text); err == nil {
			lastGood = &known
		}
	}
	return settings.Parse(cm.Data, lastGood)
}

// sameSettings says whether a change of the ConfigMap changed anything for a service.
func sameSettings(before, after *corev1.ConfigMap) bool {
	a, wrongBefore := parseSettings(before)
	b, wrongAfter := parseSettings(after)
	return reflect.DeepEqual(a, b) && slices.Equal(wrongBefore, wrongAfter)
}

// keepLastGood stores settings without problems on their ConfigMap, so that a
// later typo falls back to them and not to the defaults. Problems are told once
// for each version of the ConfigMap.
func keepLastGood(ctx context.Context, w Writer, recorder events.EventRecorder, cm *corev1.ConfigMap) error {
	set, problems := parseSettings(cm)
	metrics.SettingsProblems(len(problems))
	if len(problems) > 0 {
		for _, p := range problems {
			recorder.Eventf(cm, nil, corev1.EventTypeWarning, "SettingIgnored", "Read", "%s", p.Error())
		}
		return nil
	}
	text := settings.Encode(set)
	if cm.Annotations[settings.LastGoodAnnotation] == text {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": cm.ResourceVersion,
		"annotations":     map[string]string{settings.LastGoodAnnotation: text},
	}})
	if err != nil {
		return err
	}
	target := &corev1.ConfigMap{}
	target.Namespace, target.Name = cm.Namespace, cm.Name
	write := &Write{Kind: WriteSettings, Verb: VerbPatch, Object: target, PatchType: types.MergePatchType, Patch: patch}
	if err := w.Write(ctx, write); err != nil && classify(write, err) != conflicted {
		return err
	}
	return nil
}
