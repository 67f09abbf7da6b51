// Package install puts the product into a lab the way an administrator would: its CRDs, roles and webhooks as shipped,
// applied server-side, and the manager's own identity. Only the webhooks' address differs from a real installation.
package install
