// SPDX-License-Identifier: Apache-2.0

// Package fields checks what is sent to an emulator by the description of the vendor.
//
// The guarantee: a field that the description does not have, or that has another type, or that only the service writes, is a problem.
//
// What surprises: descriptions are data in the emulators, with their source and date; this package has none.
package fields
