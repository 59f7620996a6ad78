// SPDX-License-Identifier: Apache-2.0

// Package aci is a test server of Azure Container Instances: its resource manager, its tokens, and the sessions
// of exec. A real provider runs the containers of groups, behind an emulator.Fleet.
//
// The guarantee: a request needs a token of this server that has not expired, an action of the role, and only
// fields of the vendor's description, of their types. Otherwise the server refuses it as ACI does. Lists have no
// instanceView, and secret values are never shown again.
//
// Note: undocumented behaviour of ACI is a guess here: the start time of a group, how a command is split into words, and the events
// of a readiness probe.
package aci
