// SPDX-License-Identifier: Apache-2.0

// Package entra stands for Microsoft Entra and for the metadata service of machines before emulators of services of Azure.
//
// The guarantee: only the principal and the identities of machines get tokens, each token is for one audience, and it ends.
//
// What surprises: tokens are random texts, so only the same process knows them.
package entra
