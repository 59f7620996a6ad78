// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"encoding/json"
	"reflect"
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fill sets every field in v; lists and maps get one entry.
func fill(v reflect.Value) {
	switch v.Interface().(type) {
	case metav1.Time:
		v.Set(reflect.ValueOf(metav1.Unix(1700000000, 0)))
		return
	case resource.Quantity:
		v.Set(reflect.ValueOf(resource.MustParse("1")))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(1)
	default:
		panic(v.Type().String())
	}
}

// leaves calls do for every value in v that can change, with its path.
func leaves(v reflect.Value, path string, do func(path string, v reflect.Value)) {
	switch v.Interface().(type) {
	case metav1.Time, resource.Quantity:
		do(path, v)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		leaves(v.Elem(), path, do)
		do(path, v)
	case reflect.Struct:
		for i := range v.NumField() {
			leaves(v.Field(i), path+"."+v.Type().Field(i).Name, do)
		}
	case reflect.Slice:
		leaves(v.Index(0), path+"[0]", do)
		do(path, v)
	default:
		do(path, v)
	}
}

func filled() *corev1.PodStatus {
	s := &corev1.PodStatus{}
	fill(reflect.ValueOf(s).Elem())
	return s
}

// TestSameNoticesEveryField holds that a status with one changed field, whichever it is, is not the same.
func TestSameNoticesEveryField(t *testing.T) {
	a := filled()
	if !sameStatus(a, a.DeepCopy()) {
		t.Fatal("a copy is not the same")
	}
	checked := 0
	b := a.DeepCopy()
	leaves(reflect.ValueOf(b).Elem(), "status", func(path string, v reflect.Value) {
		old := reflect.New(v.Type()).Elem()
		old.Set(v)
		v.SetZero()
		if sameStatus(a, b) || sameStatus(b, a) {
			t.Errorf("nobody notices a change of %s", path)
		}
		v.Set(old)
		checked++
	})
	if !sameStatus(a, b) || checked < 80 {
		t.Errorf("%d places were changed, and not all changed back", checked)
	}
}

func TestSameDoesNotCareHowNothingIsWritten(t *testing.T) {
	none, empty := &corev1.PodStatus{}, &corev1.PodStatus{
		PodIPs: []corev1.PodIP{}, Conditions: []corev1.PodCondition{}, ContainerStatuses: []corev1.ContainerStatus{},
		AllocatedResources: corev1.ResourceList{}, ResourceClaimStatuses: []corev1.PodResourceClaimStatus{},
	}
	utc := metav1.NewTime(time.Unix(1700000000, 0).UTC())
	elsewhere := metav1.NewTime(utc.In(time.FixedZone("elsewhere", 3600)))
	early, late := &corev1.PodStatus{StartTime: &utc}, &corev1.PodStatus{StartTime: &elsewhere}
	for _, pair := range [][2]*corev1.PodStatus{{none, empty}, {early, late}} {
		if !sameStatus(pair[0], pair[1]) || !equality.Semantic.DeepEqual(pair[0], pair[1]) {
			t.Errorf("not the same: %+v and %+v", pair[0], pair[1])
		}
	}
}

// TestPatchNamesEveryFieldThatDiffers holds that each written field alone makes a patch, and that another patch removes it again.
func TestPatchNamesEveryFieldThatDiffers(t *testing.T) {
	all := reflect.ValueOf(filled()).Elem()
	foreign := map[string]bool{ // written by other clients
		"NominatedNodeName": true, "QOSClass": true, "ResourceClaimStatuses": true, "ExtendedResourceClaimStatus": true,
		"NodeAllocatableResourceClaimStatuses": true, "VolumeHealth": true,
	}
	removes := regexp.MustCompile(`"status":{"\w+":(null|\[{"\$patch":"replace"}\])}`)
	for i := range all.NumField() {
		field := all.Type().Field(i).Name
		with := &corev1.PodStatus{}
		reflect.ValueOf(with).Elem().Field(i).Set(all.Field(i))
		emptied := &corev1.PodStatus{} // with an empty list, if the field is a list
		if v := reflect.ValueOf(emptied).Elem().Field(i); v.Kind() == reflect.Slice {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		} else if v.Kind() == reflect.Map {
			v.Set(reflect.MakeMap(v.Type()))
		}
		for name, statuses := range map[string][2]corev1.PodStatus{"set": {{}, *with}, "removed": {*with, {}}, "emptied": {*with, *emptied}} {
			pod := &corev1.Pod{Status: statuses[0]}
			pod.UID = "uid"
			body, any := PatchBody(pod, Change{Status: statuses[1]})
			if want := !foreign[field] && (field != "Conditions" || name == "set"); any != want {
				t.Errorf("%s %s: a patch is %t, want %t", field, name, any, want)
			}
			if any && !json.Valid(body) {
				t.Errorf("%s %s: %s", field, name, body)
			}
			if any && name != "set" && !removes.Match(body) {
				t.Errorf("%s %s: %s, want nothing left of it", field, name, body)
			}
		}
	}
}

func TestObjectIsWrittenAsJSON(t *testing.T) {
	for _, text := range []string{"", "plain ~", `"`, `\`, "<", "&", ">", "ä", "\n", "\x00", "\x7f", "\xff"} {
		var o object
		o.text("a", text)
		o.set("b", nil)
		want, err := json.Marshal(map[string]any{"a": text, "b": nil})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(o.end()); got != string(want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := string((&object{}).end()); got != "{}" {
		t.Errorf("empty: %s", got)
	}
}

// TestPublishChangesNothingThatItIsGiven: its result may share memory with the API server's pod and the report, which other goroutines
// read.
func TestPublishChangesNothingThatItIsGiven(t *testing.T) {
	report := runningStatus()
	report.ContainerStatuses[0].State.Running.StartedAt = metav1.Time{Time: now.Add(1234567)}
	api := pod("a")
	api.Status = *runningStatus()
	api.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Time{Time: now.Add(77)}},
		{Type: "own", Status: corev1.ConditionTrue},
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
	}
	report.Conditions = []corev1.PodCondition{{Type: "own", Status: corev1.ConditionFalse}}
	waits := pod("a", inPhase(corev1.PodPending))
	waits.Status.Reason, waits.Status.ContainerStatuses = ReasonProviderFailed, []corev1.ContainerStatus{container(waiting)}
	waits.Status.ContainerStatuses[0].State.Waiting.Reason = WaitingConfig
	for name, v := range map[string]View{
		"report":  {API: api, Report: report, Generation: 1, Reflected: 1},
		"none":    {API: api},
		"stopped": {API: api, Stopped: true, Attempted: true, Failure: &PodFailure{Reason: "r"}},
		"ended":   {API: api, Report: endedStatus(0), Failure: &PodFailure{Reason: "r"}, Stopped: true},
		"waits":   {API: waits},
		"syncErr": {API: api, SyncError: &SyncError{Reason: "r", Container: "c", WaitingReason: "w"}},
	} {
		v.Now = now
		apiBefore, reportBefore := v.API.DeepCopy(), v.Report.DeepCopy()
		_, status := Publish(v)
		PatchBody(v.API, Change{Status: status})
		if !reflect.DeepEqual(apiBefore, v.API) || !reflect.DeepEqual(reportBefore, v.Report) {
			t.Errorf("%s: what was given has changed", name)
		}
	}
}

func BenchmarkPublishAndPatch(b *testing.B) {
	v := View{API: pod("a"), Report: runningStatus(), Generation: 1, Reflected: 1, Now: now}
	b.ReportAllocs()
	for b.Loop() {
		_, status := Publish(v)
		PatchBody(v.API, Change{Status: status})
	}
}

func BenchmarkNextAtRest(b *testing.B) {
	api := pod("a")
	api.Generation = 1
	f := given{API: api, Sent: Sent{UID: api.UID, Attempted: true, Accepted: true, SpecVersion: SpecVersion(api)}}.facts()
	f.untake(Look)
	b.ReportAllocs()
	for b.Loop() {
		_ = Next(&f)
	}
}
