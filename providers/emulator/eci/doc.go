// SPDX-License-Identifier: Apache-2.0

// Package eci is a server for tests that speaks the API of Alibaba Cloud Elastic Container Instance of 2018-08-08.
//
// The guarantee: a request is refused that the service would refuse by its shape: fields.json has the fields of all requests, from the vendor's
// own client, with the date.
//
// What surprises: what the service says of a request that it understands is ours, so it can share our misreadings.
package eci
