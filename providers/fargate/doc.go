// SPDX-License-Identifier: Apache-2.0

// Package fargate runs pods as tasks of Amazon ECS on AWS Fargate.
//
// The guarantee: a pod that Fargate cannot run as written is refused with the path of the field. A missing
// answer means doubt and nothing else: a pod is gone only when ECS says so, and its exit codes are those of ECS,
// or unknown. The value of a secret is never in a task definition, a tag or a name.
//
// The surprise: a task definition does not belong to one pod. Its name is a hash of its content, and pods with
// the same content share it, because ECS allows about one registration a second.
package fargate
