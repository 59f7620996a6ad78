// SPDX-License-Identifier: Apache-2.0

// Package compat tests that programs written for Virtual Kubelet still compile: api.txt lists the API that they rely on, and the tests here
// compare the tree with it.
//
// Note: an interface that other programs implement may not grow. Another method breaks every provider, so new abilities are
// interfaces of their own.
package compat
