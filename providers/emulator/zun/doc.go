// SPDX-License-Identifier: Apache-2.0

// Package zun is a test server for a part of the API of OpenStack Zun, with microversions, and for the login of
// Keystone.
//
// The guarantee: a request is refused if Zun would refuse it for its shape or the state of the container. fields.json has the schemas and
// the states, from Zun's own source, with the date. As in Zun, lists show the last refreshed states, names are not unique, and starts and
// stops end later. A create that is refused late leaves a container behind, and capsules do not report the end of their containers.
//
// Note: each start of a container is a new group at the runner, so its files begin anew. The server
// keeps the log of stopped runs, except for their last lines.
package zun
