// SPDX-License-Identifier: Apache-2.0

// Package compat holds the promise that programs written for Virtual Kubelet
// go on compiling: api.txt lists what they rely on, and the tests here hold the
// tree against it.
//
// What surprises: an interface that others implement may not grow. A method
// more breaks every provider, so new abilities are interfaces of their own.
package compat
