// SPDX-License-Identifier: Apache-2.0

// Package fields checks requests to an emulator against the description of the vendor.
//
// The guarantee: unknown fields, fields of another type, and fields that only the service writes are problems.
//
// Note: descriptions are data in the emulators, with their source and date; this package has none.
package fields
