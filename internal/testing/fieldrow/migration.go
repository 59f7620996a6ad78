// SPDX-License-Identifier: Apache-2.0

package fieldrow

// migration is files and command lines of other providers.
var migration = []Row{}
