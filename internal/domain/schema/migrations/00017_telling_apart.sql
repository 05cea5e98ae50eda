-- +goose Up
-- Telling, channel by channel: each is asked for, handed over and believed for itself.
--
-- The release before this one may go on while this runs, and a little longer: what it writes without naming the new
-- columns is taken for what it is by their defaults.

-- A send request is of one channel: who is told anew by e-mail, to another address, keeps the SMS that is under way.
-- The number counts the requests of the notice; each channel knows which of them it is at.
alter table notice
  add column email_request integer not null default 1,
  add column sms_request integer not null default 1,
  add constraint notice_requests_known check (email_request >= 1 and sms_request >= 1);
update notice set email_request = request, sms_request = request where request > 1;
grant update (email_request, sms_request) on notice to usher_app;

-- What makes the key of a message unguessable: whoever names it in a bounce has the message, or one that came back.
-- 244 random bits, made once; a restored copy keeps them.
alter table installation add column secret text not null default replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '');

alter table delivery
  -- A delivery is claimed, and handed over only after this stands: what was claimed by a process that died before goes
  -- back as if nobody had had it. The release before hands over without writing it: it is to be believed that it did.
  add column handed_at timestamptz default clock(),
  -- A receipt of arrival is the last word, in whatever order receipts come.
  add column arrived_at timestamptz;
grant update (handed_at, arrived_at) on delivery to usher_app;

-- +goose StatementBegin
-- The deliveries on a channel that its holder did not claim: those handed over by whoever is gone, and those that were
-- never handed over by whoever held the channel before.
create function abandoned_deliveries(of_channel text, most integer) returns table (organisation_id bigint, delivery_id bigint)
language sql volatile security definer set search_path = public, pg_temp
as $$
select organisation_id, id from delivery
 where channel = of_channel and state = 'sending' and (lease_until < clock() or handed_at is null) order by lease_until limit most
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- What a gateway or a mailbox speaks of, before an organisation is known. The channel comes from whoever asks, and a key
-- of one is none of the other. What else is said of the message must agree with what is known of it: the address, where
-- one is named, and the gateway's own key, once it gave one. An address alone names no message.
create or replace function find_deliveries(of_channel text, of_message text, of_gateway text, of_address text)
returns table (organisation_id bigint, delivery_id bigint)
language sql volatile security definer set search_path = public, pg_temp
as $$
select organisation_id, id from delivery
 where channel = of_channel and of_message <> '' and message_key = of_message
   and (of_gateway = '' or gateway_key in ('', of_gateway)) and (of_address = '' or lower(address) = lower(of_address))
union
select organisation_id, id from delivery
 where channel = of_channel and of_message = '' and of_gateway <> '' and gateway_key = of_gateway
   and (of_address = '' or lower(address) = lower(of_address))
$$;
-- +goose StatementEnd
revoke execute on function abandoned_deliveries(text, integer) from public;
grant execute on function abandoned_deliveries(text, integer) to usher_app;

-- Nothing is looked up by an address alone any more.
drop index delivery_of_address;
