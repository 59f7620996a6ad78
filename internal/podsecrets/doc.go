// SPDX-License-Identifier: Apache-2.0

// Package podsecrets hands out what pods of this node may have: the tokens of their
// service accounts, and the credentials to pull their images with; and it knows what was read and
// handed out, so that it can be taken out of texts.
//
// The guarantee: only a pod of this node, by its UID, that has not ended gets anything, and only
// what the API server's copy of it names. A token is bound to the pod's UID, has the
// audience and the life that a projected volume of the pod asks for, is asked for again at 80 %
// of its life or after 24 hours, and is forgotten with the pod, also if it arrives later.
//
// What surprises: nothing runs here, and nothing is read for a pod until somebody asks: a pod that waits, or for which the
// node has no room, is known here, but the provider was not given it and does not ask. A token is renewed when somebody asks for it who
// is told when to ask again; while the API server does not answer, the old one is given for
// as long as it is valid.
package podsecrets
