// SPDX-License-Identifier: Apache-2.0

// Package ecs is a test server for the parts of Amazon ECS, Secrets Manager and CloudWatch Logs that run tasks
// on Fargate.
//
// The guarantee: a request is refused without a timely signature (Signature Version 4), if the policy of its key
// does not allow it, or if the service would refuse its shape. fields.json has the input of each operation, from
// the vendor's own model, with the date. Containers really run, at the runner behind the server.
//
// Note: rules beyond shapes, such as the sizes of tasks and the order of states, are our reading of the
// documentation. So the server can share our misreadings.
package ecs
