// SPDX-License-Identifier: Apache-2.0

// Package providertest is the contract of providers: the promises of every provider to the node and to users, as
// data. Run makes them subtests; Verify returns a Report, for programs other than tests, such as the command
// contract of package cli. A ResultFile keeps the results.
//
// A Harness defines how to open the provider on a backend, and how its containers run the program of a check: a
// Program prints, writes, waits and ends with an exit code. With a shell, Shell makes a script of the program;
// without a shell, the command providertest/program/contractprogram runs it. Further abilities of a harness,
// such as to break the backend or to count instances, are in optional fields of Backend.
//
// The guarantee: a broken promise is a failure. A check that is impossible here is skipped with its reason, never passed. A declared
// feature (package capability) that no check proves fails the run, unless the harness gives a reason. An undeclared feature is requested,
// and must be refused with the path of its field. The checks themselves are tested: for each of many known mistakes of providers, only the
// check for this mistake fails.
//
// A check removes all its objects, even if its context ends. Its result names the remaining pods. RemoveLeftovers removes the pods of a
// killed run.
//
// Note: checks call the provider as the node does, but there is no node and no API server. They wait for
// expected changes for as long as Harness.Patience, so a broken provider takes much longer than a healthy one.
// In the bubble of testing/synctest waiting costs nothing, but T.Run is not allowed: use Verify there.
//
// Package inprocess is the in-memory provider on which the contract runs and is tested; its containers are
// goroutines. It is not package memory, whose backend starts nothing: package memory is for tests of
// controllers, and lies and fails in ways that no provider may. The providers of this repository run the
// contract in their own contract_test.go.
package providertest
