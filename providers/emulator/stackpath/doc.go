// SPDX-License-Identifier: Apache-2.0

// Package stackpath is a server for tests that speaks the API of StackPath Edge Compute, with its login and its console.
//
// The guarantee: a request is refused that the service would refuse by its description: fields.json has the operations, the fields and the lists of
// values, from the description that the vendor published, with the date.
//
// What surprises: the service closed in 2024, so all that the description does not say is ours: the codes of refusals, what a slug that is taken does, how
// the console makes words of a command, and when a workload that was deleted is no more.
package stackpath
