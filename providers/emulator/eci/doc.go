// SPDX-License-Identifier: Apache-2.0

// Package eci is a test server for the API of Alibaba Cloud Elastic Container Instance of 2018-08-08.
//
// The guarantee: a request is refused if the service would refuse its shape. fields.json has the fields of all
// requests, from the vendor's own client, with the date.
//
// Note: the answers to valid requests are our reading of the documentation, so they can share our
// misreadings.
package eci
