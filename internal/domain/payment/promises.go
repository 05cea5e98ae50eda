package payment

import (
	_ "embed"

	"usher/internal/domain/promise"
)

//go:embed promises.sql
var promisesSQL string

// Promises are what holds of money at any moment: each sum has its owner, and what is paid is what was received.
func Promises() []promise.Promise {
	of := promise.Read(promisesSQL)
	return []promise.Promise{
		{Name: "money_owned", Statement: `
select true, case when state = '' then 'money_nobodys' else 'money_wrong' end, organisation_id,
       jsonb_build_object('reference', reference, 'cost', jsonb_build_object('minor', cost_minor, 'currency', currency),
                          'received', jsonb_build_object('minor', received_minor, 'currency', currency),
                          'back', jsonb_build_object('minor', back_minor, 'currency', currency),
                          'due', jsonb_build_object('minor', due_minor, 'currency', currency))
  from (` + balanceSQL + `) b
 union all ` + of["money_open"], Guards: []promise.Guard{
			{Name: "refund_within_payment", Over: "trigger refund"},
			{Name: "back_within_payment", Over: "trigger payment"},
		}},
		{Name: "paid_kept", Statement: of["paid_kept"], Guards: []promise.Guard{
			{Name: "payment_keeps_paid_minor", Over: "trigger payment"},
			{Name: "payment_idempotency_key", Over: "payment (organisation_id, idempotency_key)"},
			{Name: "payment_reversal_key", Over: "payment (organisation_id, reverses_id) WHERE (reverses_id IS NOT NULL)"},
		}},
	}
}
