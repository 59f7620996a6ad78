// SPDX-License-Identifier: Apache-2.0

// Package poll keeps what a service says of the pods of a node, for services that tell nothing by themselves: one list for all
// pods, then what changed since, fast while pods start or stop and slow at rest.
//
// The guarantee: an error is never an empty list. A pod is lost only when several complete lists in a row lack it, and one that is
// stopped is gone only when such lists say so. An answer that was asked for before a newer one came is not believed. The number
// of requests does not depend on the number of pods, but for the pages of a list.
//
// What surprises: a service that pushes feeds the same cache, with Take, and is asked all the same, only less often; one that pushes all changes
// gives its own lists to TakeAll, without Run. And
// nothing is kept on disk: a provider that starts finds its pods by its first list, with no write.
package poll
