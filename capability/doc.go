// SPDX-License-Identifier: Apache-2.0

// Package capability says which features of pods a backend has, and what of a pod it therefore cannot
// do.
//
// The guarantee: the declaration of a provider is one table. Pods are admitted by it, the table of
// support in the documentation is written from it, and `virtual-kubelet check` answers by it, so the
// three cannot say different things. A feature that is not declared is refused, with the path of each field
// that asks for it. Has names two features that a declaration has without naming them.
//
// What surprises: a provider that declares nothing is asked nothing: it gets every pod, as providers always
// did. And a field that has no feature in the table here is nobody's: it is not looked at.
package capability
