// SPDX-License-Identifier: Apache-2.0

// Package ecs is a server for tests that speaks the parts of Amazon ECS, Secrets Manager and CloudWatch Logs that run tasks on Fargate.
//
// The guarantee: a request is refused that is not signed by Signature Version 4 in time, that the policy of its key does not name, or
// that the service would refuse by its shape: fields.json has the input of each operation, from the vendor's own model, with the date.
// Containers really run, at the runner behind it.
//
// What surprises: rules beyond shapes, such as the sizes of tasks and the order of states, are from the documentation, by us. So the
// server can share our misreadings.
package ecs
