// SPDX-License-Identifier: Apache-2.0

// Package huaweicci is a provider that runs pods in Huawei Cloud Container Instance, by its API 2.0 (cci/v2) or 1.0.
//
// The guarantee: what the package remotecluster promises. Beyond that, a pod is sent with documented fields only, so none is dropped
// in silence, and with requests and limits that are the same and a size that CCI sells: the smallest one that has room for it.
//
// What surprises: API 2.0 is that of Kubernetes under another name. A transport below the client writes v1 as cci/v2, so that the client
// is the usual one. All pods are in one namespace of CCI, which has one network.
package huaweicci
