// SPDX-License-Identifier: Apache-2.0

// Package aci is a server of Azure Container Instances for tests: its resource manager, its tokens, and the sessions of exec. The containers of
// groups are run by a real provider, behind an emulator.Fleet.
//
// The guarantee: a request has a token that this server gave and that has not expired, an action that the role names, and only fields that
// the vendor's description has, of their types; else it is refused as ACI does. Lists have no instanceView, and values that are secret are
// never shown again.
//
// What surprises: what ACI does and does not document is a guess here: how long a group starts, how a command is split into words, and what a
// readiness probe leaves in the events.
package aci
