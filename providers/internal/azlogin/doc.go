// SPDX-License-Identifier: Apache-2.0

// Package azlogin has what providers of services of Azure share: how they log in, and how they read what Azure says.
//
// The guarantee: a token is asked for when a request needs one, a secret that is replaced is used from the next token on, and no error has a
// secret in it.
//
// What surprises: requests are not tried again here, because the node waits as long as the service says.
package azlogin
