// SPDX-License-Identifier: Apache-2.0

// Package providertest is the contract of providers: what every one promises to the node and to users, as checks that are
// data. Run makes them subtests; Verify returns a Report, for programs that are no tests, such as the command contract of package cli. A
// ResultFile keeps what came of it.
//
// A Harness says how to open the provider on a backend, and how its containers do what a check asks of them: a
// Program prints, writes, waits and ends with an exit code. Where there is a shell, Shell makes a script of it; where there is none,
// the command providertest/program/contractprogram runs it. What else a harness can do, such as to break the backend or to count
// instances, is in fields of Backend that may be nil.
//
// The guarantee: what a check says does not hold has failed, and what cannot be made here is skipped with its reason, never
// passed. A feature that is declared (package capability) and that no check proves fails the run, unless the harness says
// why it cannot be proven there. A feature that is not declared is asked for and must be refused with the path of its field. The checks
// themselves are tested: for each of many known mistakes of providers, the check that is for it fails and no other.
//
// What a check makes it removes, also when its context ends; what could not be removed is in its result, and RemoveLeftovers is for what
// a run left that was killed.
//
// What surprises: checks call the provider as the node does, but there is no node and no API server. They wait for what should
// come for as long as Harness.Patience, so a provider that is broken takes much longer than one that is well. In the bubble of
// testing/synctest waiting costs nothing, but T.Run is not allowed: use Verify there.
//
// Package inprocess is the provider in memory on which the contract runs and is tested, with containers that are goroutines. It
// is not package memory, whose backend starts nothing: that one is for tests of controllers, and lies and fails in ways in which no
// provider may. The providers of this repository run the contract in their own contract_test.go.
package providertest
