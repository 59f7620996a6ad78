// SPDX-License-Identifier: Apache-2.0

// Package poll keeps a service's reports about the pods of a node, for services that push nothing: one list for
// all pods, then the changes since, fast while pods start or stop and slow at rest.
//
// The guarantee: an error is never an empty list. A pod is lost only after several complete lists in a row
// without it, and a stopped pod is gone only after such lists. An answer to an older request than a newer answer
// is ignored. The number of requests does not depend on the number of pods, except for the pages of a list.
//
// The surprise: a service that pushes feeds the same cache through Take, and still gets requests, only fewer. A
// service that pushes all changes gives its own lists to TakeAll, without Run. Nothing is kept on disk: a
// provider that starts finds its pods by its first list, without a write.
package poll
