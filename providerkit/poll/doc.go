// SPDX-License-Identifier: Apache-2.0

// Package poll caches the state of a node's pods at a service that pushes no changes: it requests a list of all pods, and then the changes
// since, often while pods start or stop and seldom at rest.
//
// The guarantee: an error is never an empty list. A pod is lost only after several complete lists in a row
// without it, and a stopped pod is gone only after such lists. An answer to an older request than a newer answer
// is ignored. The number of requests does not depend on the number of pods, except for the pages of a list.
//
// Note: a driver of a service that pushes some changes feeds the same cache through Take; the cache still polls, but less often. A
// driver of a service that pushes all changes gives its own lists to TakeAll, without Run. Nothing is stored on disk: a starting provider
// finds its pods with its first list.
package poll
