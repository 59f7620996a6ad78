// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Declarer is an ability of a provider: it declares the features of its backend. The node refuses pods that need more.
type Declarer interface {
	// Capabilities returns the declaration. It does not change while the node runs.
	Capabilities() Declaration
}

// Declaration has the features of a backend. Make it with All or Only.
type Declaration struct {
	has      map[Feature]string      // the value is a note for users, or ""
	lack     map[Feature]string      // the reason why a feature is missing
	parts    map[Feature][]lackField // missing fields of available features
	accepted map[Feature]bool        // a pod that requests these features runs without them
}

// lackField has the end of a field's path, and the reason why the field is missing.
type lackField struct{ field, why string }

// Only declares the named features and RunToCompletion. For a backend without RunToCompletion, call Lacks.
func Only(has ...Feature) Declaration {
	d := Declaration{has: make(map[Feature]string, len(has)), lack: map[Feature]string{}}
	for _, f := range has {
		d.has[f] = ""
	}
	return d
}

// All declares every feature. Remove missing features with Lacks.
func All() Declaration { return Only(Features()...) }

// Lacks returns a declaration without the features; why replaces the general reason in messages to users.
func (d Declaration) Lacks(why string, without ...Feature) Declaration {
	d = d.copyDeclaration()
	for _, f := range without {
		delete(d.has, f)
		d.lack[f] = why
	}
	return d
}

// LacksFields returns a declaration in which some fields of the feature are missing. A field is the end of a path, such as capabilities.drop.
func (d Declaration) LacksFields(why string, of Feature, fields ...string) Declaration {
	d = d.copyDeclaration()
	for _, f := range fields {
		d.parts[of] = append(slices.Clip(d.parts[of]), lackField{"." + f, why})
	}
	return d
}

// Note returns a declaration with the features and a note about them for users.
func (d Declaration) Note(note string, of ...Feature) Declaration {
	d = d.copyDeclaration()
	for _, f := range of {
		delete(d.lack, f)
		d.has[f] = note
	}
	return d
}

func (d Declaration) copyDeclaration() Declaration {
	out := Declaration{has: map[Feature]string{}, lack: map[Feature]string{}, parts: map[Feature][]lackField{}, accepted: map[Feature]bool{}}
	maps.Copy(out.has, d.has)
	maps.Copy(out.lack, d.lack)
	maps.Copy(out.parts, d.parts)
	maps.Copy(out.accepted, d.accepted)
	return out
}

// Has reports whether the backend has the feature. Two features are newer than some declarations: HostPortMapping was a part of HostPorts, and every
// backend had RunToCompletion. A declaration has these two features unless Lacks removes them.
func (d Declaration) Has(f Feature) bool {
	if _, has := d.has[f]; has {
		return true
	}
	if _, lacks := d.lack[f]; lacks {
		return false
	}
	switch f {
	case HostPortMapping:
		return d.Has(HostPorts)
	case RunToCompletion:
		return true
	}
	return false
}

// Remark returns the note for a feature of the backend, or the reason for a missing feature; "" if the
// declaration has neither.
func (d Declaration) Remark(f Feature) string {
	if note, has := d.has[f]; has {
		return note
	}
	return d.lack[f]
}

// Unsupported is a field of a pod for a missing feature.
type Unsupported struct {
	Need
	// Why is the reason, for users.
	Why string
}

// String returns the path of the field and the reason.
func (u Unsupported) String() string { return u.Path + ": " + u.Why }

// Check returns every unsupported field of a pod, or nil if the pod can run. It omits accepted fields: see Unenforced.
func (d Declaration) Check(pod *corev1.Pod) []Unsupported {
	refused, _ := d.judgePod(pod)
	return refused
}

// judgePod returns the unsupported fields of a pod: refused fields, and unenforced fields.
func (d Declaration) judgePod(pod *corev1.Pod) (refused, unenforced []Unsupported) {
	for _, need := range Needs(pod) {
		why, lacks := d.lacksNeed(need)
		if !lacks || lastUnsupported(refused).Path == need.Path || lastUnsupported(unenforced).Path == need.Path {
			continue // one reason per field is sufficient
		}
		if d.accepted[need.Feature] && need.canBeLeftOut(pod) {
			unenforced = append(unenforced, Unsupported{need, why})
		} else {
			refused = append(refused, Unsupported{need, why})
		}
	}
	return refused, unenforced
}

// lacksNeed reports whether the backend does not have a field, and why.
func (d Declaration) lacksNeed(need Need) (why string, lacks bool) {
	if !d.Has(need.Feature) {
		if why = d.lack[need.Feature]; why == "" {
			why = fmt.Sprintf("the backend has no %s", need.Feature)
		}
		return why, true
	}
	for _, part := range d.parts[need.Feature] {
		if strings.HasSuffix(need.Path, part.field) {
			return part.why, true
		}
	}
	return "", false
}

func lastUnsupported(of []Unsupported) (u Unsupported) {
	if len(of) > 0 {
		u = of[len(of)-1]
	}
	return u
}

// Message returns one text about all of the fields, with their paths.
func Message(all []Unsupported) string {
	return "this node cannot run the pod: " + joinTexts(all)
}

func joinTexts(all []Unsupported) string {
	texts := make([]string, len(all))
	for i, u := range all {
		texts[i] = u.String()
	}
	return strings.Join(texts, "; ")
}
