// SPDX-License-Identifier: Apache-2.0

package providertest

var settings []Check
