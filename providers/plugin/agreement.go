// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
)

// agreement has the declarations of a plugin from its first handshake, with which the node was registered.
type agreement struct {
	name        string
	abilities   []rpc.Ability
	declaration capability.Declaration
	node        *corev1.Node // nil: unchanged
}

// readHandshake returns the declarations in a handshake.
func readHandshake(hello *rpc.HandshakeResponse) (agreement, error) {
	a := agreement{name: hello.GetName(), abilities: hello.GetAbilities(), declaration: capability.All()}
	if a.name == "" {
		a.name = "without a name"
	}
	if a.hasAbility(rpc.Ability_ABILITY_POD_OBJECTS) && !a.hasAbility(rpc.Ability_ABILITY_LOOKUPS) {
		return a, fmt.Errorf("plugin %s declares ABILITY_POD_OBJECTS without ABILITY_LOOKUPS, which it needs", a.name)
	}
	if d := hello.GetDeclaration(); d != nil {
		var err error
		if a.declaration, err = readDeclaration(d); err != nil {
			return a, fmt.Errorf("plugin %s: %w", a.name, err)
		}
	}
	if data := hello.GetNodeJson(); len(data) > 0 {
		a.node = &corev1.Node{}
		if err := json.Unmarshal(data, a.node); err != nil {
			return a, fmt.Errorf("plugin %s: the node in its handshake: %w", a.name, err)
		}
	}
	return a, nil
}

func readDeclaration(d *rpc.Declaration) (capability.Declaration, error) {
	out := capability.Only()
	known := capability.Features()
	feature := func(n *rpc.FeatureNote) (capability.Feature, error) {
		f := capability.Feature(n.GetFeature())
		if !slices.Contains(known, f) {
			return f, fmt.Errorf("it declares the feature %q, which this virtual-kubelet does not know: docs/reports/support.md lists the known features", f)
		}
		return f, nil
	}
	for _, n := range d.GetLacks() {
		f, err := feature(n)
		if err != nil {
			return out, err
		}
		out = out.Lacks(n.GetNote(), f)
	}
	for _, n := range d.GetHas() {
		f, err := feature(n)
		if err != nil {
			return out, err
		}
		out = out.Note(n.GetNote(), f)
	}
	return out, nil
}

func (a agreement) hasAbility(ability rpc.Ability) bool { return slices.Contains(a.abilities, ability) }

// keptBy returns an error if a reconnected plugin has fewer abilities or features than a.
func (a agreement) keptBy(now agreement) error {
	var less []string
	for _, ability := range a.abilities {
		if !now.hasAbility(ability) {
			less = append(less, ability.String())
		}
	}
	for _, f := range capability.Features() {
		if a.declaration.Has(f) && !now.declaration.Has(f) {
			less = append(less, string(f))
		}
	}
	// These abilities must not appear later either, because the node would not handle them.
	for _, ability := range []rpc.Ability{rpc.Ability_ABILITY_POD_OBJECTS, rpc.Ability_ABILITY_AUTHORITY} {
		if now.hasAbility(ability) && !a.hasAbility(ability) {
			return fmt.Errorf("plugin %s came back with %v, and the node was registered without: restart virtual-kubelet", now.name, ability)
		}
	}
	if len(less) > 0 {
		return fmt.Errorf("plugin %s came back without features that it declared when the node was registered: %s: restart virtual-kubelet", now.name, strings.Join(less, ", "))
	}
	return nil
}
