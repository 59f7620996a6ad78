// SPDX-License-Identifier: Apache-2.0

// Package zun is a server for tests that speaks a part of the API of OpenStack Zun, with microversions, and as much of Keystone's as logs in there.
//
// The guarantee: a request is refused that Zun would refuse by its shape or by the state of the container: fields.json has the schemas and the states, from Zun's
// own source, with the date. As in Zun, lists have the states that were looked at last, names are not unique, starts and stops end later, a create that is
// refused late leaves a container behind, and capsules do not tell that their containers have ended.
//
// What surprises: each start of a container is a group of its own at the runner, so its files begin anew. The log is kept of runs that were
// stopped, but for their last lines.
package zun
