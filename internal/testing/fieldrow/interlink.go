// SPDX-License-Identifier: Apache-2.0

package fieldrow

// interlink is the plugins, pods and files of interLink.
var interlink = []Row{}
