package intake

// The columns. Titles are compared without case, accents, stars, degree signs, apostrophes,
// hyphens and spaces, so that "* Prénom" and "PRENOM" need only be listed once.

const (
	colReference = "reference"
	colFamily    = "family_name"
	colGiven     = "given_name"
	colBirth     = "birth_on"
	colEmail     = "email"
	colPhone     = "phone"
	colStatus    = "status"
	colFiledAt   = "filed_at"
	colCentre    = "centre"
	colExams     = "exams"
	colNeeds     = "needs"
	colLocale    = "locale"
)

var candidateFields = []field{
	{name: colReference, titles: "reference|référence|réf|ref|dossier|n° dossier|n° de dossier|numéro dossier|numéro de dossier|num dossier|" +
		"n° candidat|n° de candidat|numéro candidat|numéro de candidat|n° du candidat|identifiant|identifiant local|identifiant candidat|matricule|" +
		"code candidat|référence candidat|référence du dossier|n° d'inscription|numéro d'inscription|n° inscription|" +
		"file|file number|file no|candidate|candidate id|candidate no|candidate number|candidate reference|application id|application number|local id|registration number|id|" +
		"referencia|expediente|n° de expediente|número de expediente|n° expediente|n° de candidato|número de candidato|id candidato|identificador|código"},
	{name: colFamily, required: true, titles: "family name|nom|nom de famille|nom du candidat|nom candidat|noms|nom et prénom|nom et prénoms|nom prénom|nom & prénom|nom complet|" +
		"last name|surname|name|full name|candidate name|lastname|" +
		"apellido|apellidos|apellidos y nombre|apellidos y nombres|nombre completo|nombre y apellidos"},
	{name: colGiven, titles: "given name|prénom|prénoms|prénom(s)|prénom du candidat|prénoms du candidat|prénom candidat|" +
		"given names|first name|first names|first name(s)|firstname|forename|forenames|nombre|nombres|nombre(s)|nombre de pila"},
	{name: colBirth, dates: true, titles: "birth date|date de naissance|naissance|né le|née le|né(e) le|date naissance|ddn|" +
		"date of birth|birthday|born on|dob|birthdate|birth_date|date_of_birth|fecha de nacimiento|nacimiento|fecha nacimiento|f. nacimiento"},
	{name: colEmail, titles: "email|e-mail|mail|courriel|adresse e-mail|adresse mail|adresse courriel|adresse électronique|e-mail de convocation|courriel de convocation|" +
		"e-mail du candidat|mél|email address|e-mail address|mail address|correo|correo electrónico|correo-e|dirección de correo|dirección de correo electrónico|e-mail de citación"},
	{name: colPhone, titles: "phone|téléphone|tél|tel|n° de téléphone|n° téléphone|numéro de téléphone|tél. portable|portable|mobile|gsm|n° de portable|téléphone portable|téléphone mobile|" +
		"téléphone du candidat|contact téléphonique|phone number|telephone|telephone number|mobile phone|mobile number|cell|cell phone|teléfono|número de teléfono|n° de teléfono|móvil|teléfono móvil|celular"},
	{name: colStatus, titles: "status|statut|état|état du dossier|statut du dossier|décision|state|decision|estado|estado del expediente|situación"},
	{name: colFiledAt, dates: true, titles: "filed at|déposé le|date de dépôt|date et heure de dépôt|dépôt|dépôt du dossier|date de dépôt du dossier|dossier déposé le|date d'inscription|inscrit le|" +
		"filed on|filing date|date filed|submitted at|submitted on|application date|submission date|presentado el|fecha de presentación|fecha de depósito|fecha de inscripción"},
	{name: colCentre, titles: "centre|center|centre d'examen|centre choisi|centre souhaité|nom du centre|site|nom du site|lieu|lieu d'examen|ville d'examen|" +
		"exam centre|exam center|test centre|test center|venue|sede|centro|centro de examen|sede elegida|nombre de la sede|lugar"},
	{name: colExams, titles: "exams|épreuves|épreuve|examens|examen|code épreuve|codes épreuves|épreuve(s)|concours|exam|exam codes|exam code|paper|papers|pruebas|prueba|exámenes|código de prueba"},
	{name: colNeeds, titles: "needs|besoins|besoin|besoins particuliers|besoin particulier|aménagement|aménagements|handicap|accessibilité|accessible|situation de handicap|pmr|" +
		"special needs|accommodations|accessibility|access needs|necesidades|necesidades especiales|accesibilidad|discapacidad|adaptaciones"},
	{name: colLocale, titles: "locale|langue|langue de correspondance|langue de convocation|language|preferred language|lang|idioma|lengua"},
}

const (
	colExam     = "exam"
	colRoom     = "room"
	colCapacity = "capacity"
	colStarts   = "starts_at"
	colEnds     = "ends_at"
)

var sittingFields = []field{
	{name: colExam, titles: "exam|épreuve|épreuves|examen|code épreuve|code de l'épreuve|nom de l'épreuve|concours|exam code|paper|prueba|código de prueba"},
	{name: colCentre, required: true, titles: "centre|center|centre d'examen|nom du centre|site|nom du site|lieu|lieu d'examen|" +
		"exam centre|exam center|test centre|test center|venue|sede|centro|centro de examen|nombre de la sede|lugar"},
	{name: colRoom, required: true, titles: "room|salle|nom de la salle|n° de salle|numéro de salle|amphi|amphithéâtre|room name|hall|sala|aula|nombre de la sala"},
	{name: colCapacity, titles: "capacity|capacité|places|nombre de places|nb places|nb de places|capacité de la salle|effectif maximum|seats|number of seats|capacidad|plazas|aforo|número de plazas"},
	{name: colStarts, required: true, dates: true, titles: "starts at|comienzo|fecha de comienzo|hora de comienzo|début|commence le|date et heure|date et heure de début|date de début|heure de début|date|" +
		"start|start time|starts|begins at|date and time|start date|inicio|comienza|fecha y hora|fecha de inicio|fecha y hora de inicio|fecha"},
	{name: colEnds, dates: true, titles: "ends at|fin|finit le|date et heure de fin|date de fin|heure de fin|end|end time|ends|finishes at|end date|termina|fecha de fin|fecha y hora de fin|hora de fin|fin de la prueba"},
}

const (
	colNumber     = "seat_number"
	colLabel      = "seat_label"
	colZone       = "zone"
	colBlocked    = "blocked"
	colAccessible = "accessible"
)

var planFields = []field{
	{name: colLabel, required: true, titles: "label|étiquette|place|siège|nom de la place|étiquette de place|libellé|seat|seat label|asiento|etiqueta|etiqueta de asiento|butaca|nombre del asiento"},
	{name: colNumber, titles: "number|numéro|n°|n° de place|numéro de place|seat number|no|num|ordre|order|número|n.º|n.º de asiento|número de asiento|orden"},
	{name: colZone, titles: "zone|secteur|bloc|section|area|block|zona|sector|bloque"},
	{name: colBlocked, titles: "blocked|condamnée|condamné|bloquée|bloqué|place condamnée|hors service|inutilisable|blocked seat|out of order|bloqueado|bloqueada|asiento bloqueado|inutilizable"},
	{name: colAccessible, titles: "accessible|accessibilité|pmr|place accessible|accessible seat|wheelchair|accessibility|accesible|accesibilidad|asiento accesible|movilidad reducida"},
}

const (
	colCandidate  = "candidate"
	colAmount     = "amount"
	colMethod     = "method"
	colReceivedAt = "received_at"
	colReceipt    = "receipt"
)

var paymentFields = []field{
	{name: colCandidate, required: true, titles: "candidate|dossier|candidat|n° dossier|n° de dossier|numéro dossier|numéro de dossier|n° candidat|n° de candidat|n° du candidat|numéro de candidat|" +
		"référence|référence candidat|référence du dossier|identifiant|identifiant local|matricule|reference|file|file number|candidate id|candidate number|candidate reference|id|" +
		"candidato|expediente|n° de expediente|número de expediente|n° de candidato|referencia"},
	{name: colAmount, required: true, titles: "amount|montant|montant payé|montant versé|somme|montant (fcfa)|montant fcfa|montant (f cfa)|versement|amount paid|paid|sum|importe|monto|cantidad|importe pagado"},
	{name: colMethod, titles: "method|moyen|moyen de paiement|mode|mode de paiement|mode de règlement|payment method|paid by|método|medio|forma de pago|método de pago|medio de pago"},
	{name: colReceivedAt, dates: true, titles: "received at|reçu le|date|date de paiement|date du paiement|payé le|date et heure|date de réception|date de versement|" +
		"received on|received|paid on|paid at|payment date|recibido el|fecha|fecha de pago|fecha del pago|pagado el"},
	{name: colReceipt, titles: "receipt|reçu|n° de reçu|n° reçu|numéro de reçu|n° du reçu|quittance|n° de quittance|numéro de quittance|référence du paiement|référence paiement|n° de transaction|transaction|" +
		"receipt number|receipt no|transaction id|payment reference|recibo|n° de recibo|número de recibo|comprobante|n° de comprobante"},
}
