// Package rows reads and writes the Instance rows of an InferenceReplica's
// status. There are two stored forms of the same ordered list: DenseV1, a list
// of rows, and ColumnarV2, one compact set of indexes per value of each field.
//
// Decode accepts only the canonical spelling of columns, so that encoding what
// it returns gives the same columns back, and no two stored texts mean the
// same rows. It counts before it expands: a short text can claim two thousand
// million rows.
package rows
