// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Declarer is an ability of a provider: it says what its backend can do for pods. Pods that
// ask for more are not given to it.
type Declarer interface {
	// Capabilities returns the declaration. It does not change while the node runs.
	Capabilities() Declaration
}

// Declaration says which features a backend has. Make one with All or Only.
type Declaration struct {
	has  map[Feature]string // the value is a note for users, or ""
	lack map[Feature]string // why it is not there
}

// Only declares the features that are named, and no other but RunToCompletion: a backend without that says so by Lacks.
func Only(has ...Feature) Declaration {
	d := Declaration{has: make(map[Feature]string, len(has)), lack: map[Feature]string{}}
	for _, f := range has {
		d.has[f] = ""
	}
	return d
}

// All declares every feature. What is not there is then taken out with Lacks.
func All() Declaration { return Only(Features()...) }

// Lacks returns a declaration without the features; why is said to users in the place of a
// general reason.
func (d Declaration) Lacks(why string, without ...Feature) Declaration {
	d = d.clone()
	for _, f := range without {
		delete(d.has, f)
		d.lack[f] = why
	}
	return d
}

// Note returns a declaration that has the features, and what users should know of them.
func (d Declaration) Note(note string, of ...Feature) Declaration {
	d = d.clone()
	for _, f := range of {
		delete(d.lack, f)
		d.has[f] = note
	}
	return d
}

func (d Declaration) clone() Declaration {
	out := Declaration{has: make(map[Feature]string, len(d.has)), lack: make(map[Feature]string, len(d.lack))}
	for f, note := range d.has {
		out.has[f] = note
	}
	for f, why := range d.lack {
		out.lack[f] = why
	}
	return out
}

// Has reports whether the backend has the feature. Two features are younger than declarations that do not name them: HostPortMapping was a
// part of HostPorts, and every backend had RunToCompletion. A declaration without one of them has it, unless Lacks names it.
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

// Remark returns what users should know of the feature if the backend has it, else why it does not; "" if the
// declaration says nothing.
func (d Declaration) Remark(f Feature) string {
	if note, has := d.has[f]; has {
		return note
	}
	return d.lack[f]
}

// Unsupported is a field of a pod that asks for what the backend does not have.
type Unsupported struct {
	Need
	// Why says so to users.
	Why string
}

// String is the path of the field and why.
func (u Unsupported) String() string { return u.Path + ": " + u.Why }

// Check returns all that a pod asks for and the backend does not have, nil if it can run.
func (d Declaration) Check(pod *corev1.Pod) []Unsupported {
	var all []Unsupported
	for _, need := range Needs(pod) {
		if d.Has(need.Feature) || len(all) > 0 && all[len(all)-1].Path == need.Path {
			continue // one reason for a field is enough
		}
		why := d.lack[need.Feature]
		if why == "" {
			why = fmt.Sprintf("the backend has no %s", need.Feature)
		}
		all = append(all, Unsupported{need, why})
	}
	return all
}

// Message is one text about all of them, with the path of each field.
func Message(all []Unsupported) string {
	texts := make([]string, len(all))
	for i, u := range all {
		texts[i] = u.String()
	}
	return "this node cannot run the pod: " + strings.Join(texts, "; ")
}
