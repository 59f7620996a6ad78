// SPDX-License-Identifier: Apache-2.0

package fieldrow

// rules is rules between values that no field description of a service has.
var rules = []Row{}
