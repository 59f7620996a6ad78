// SPDX-License-Identifier: Apache-2.0

// Package fargate runs pods as tasks of Amazon ECS on AWS Fargate.
//
// The guarantee: a pod that Fargate cannot run as it is written is refused with the path of the field. An answer that did not come is
// doubt and nothing else: a pod is gone when ECS says so, and its exit codes are those of ECS, or unknown. The value of a secret is
// never in a task definition, a tag or a name.
//
// What surprises: a task definition is no object of a pod. Definitions are named by a hash of what they say, and pods that say the same
// share one, as ECS allows about one registration a second.
package fargate
