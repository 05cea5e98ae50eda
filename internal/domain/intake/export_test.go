package intake

// ExportWithin lets a test export with other limits.
var ExportWithin = exportWithin

var NameKey = nameKey
