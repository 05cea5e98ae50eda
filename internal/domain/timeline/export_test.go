package timeline

// InsertSeals is the statement of Seal, so that its plan can be looked at.
const InsertSeals = insertSeals
