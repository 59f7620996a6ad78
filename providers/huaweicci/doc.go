// SPDX-License-Identifier: Apache-2.0

// Package huaweicci is a provider that runs pods in Huawei Cloud Container Instance, by its API 2.0 (cci/v2) or
// 1.0.
//
// The guarantee: the guarantees of package remotecluster. In addition, the provider sends documented fields
// only, so CCI drops no field in silence. Requests and limits are equal, and the pod has a size that CCI sells:
// the smallest size with enough room.
//
// The surprise: API 2.0 is the API of Kubernetes under another name. A transport below the client writes v1 as
// cci/v2, so the client is the usual Kubernetes client. All pods are in one namespace of CCI, which has one
// network.
package huaweicci
