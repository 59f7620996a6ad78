// SPDX-License-Identifier: Apache-2.0

// Package huaweicci is a provider that runs pods in Huawei Cloud Container Instance (CCI), with its API 2.0
// (cci/v2) or 1.0.
//
// The guarantees are those of package remotecluster. In addition, the provider sends only documented fields, so
// CCI does not silently drop fields. Requests and limits are equal, and each pod has the smallest sufficient size
// that CCI offers.
//
// Note: API 2.0 is the Kubernetes API under another name. A transport replaces v1 by cci/v2, so the
// client is a normal Kubernetes client. All pods are in one CCI namespace, which has one network.
package huaweicci
