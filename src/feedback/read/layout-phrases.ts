/**
 * How notices to people are laid out, as data: what announces a recipient, where the returned message begins, who else is
 * named in them. Lower case. What they say of a recipient is in causes.ts, that they are a notice at all in kind-phrases.ts.
 */
import { parsePhrases } from './phrases.ts';

/** Local parts of people to ask and of programs, which no notice is about. */
export const CONTACT_LOCAL_PARTS: readonly string[] = parsePhrases(`
  postmaster, abuse, mailer-daemon, mailerdaemon, hostmaster, webmaster, support, helpdesk, help, mdaemon, no-reply
  noreply, do-not-reply, donotreply, microsoftexchange, listserv, majordomo, antispam, unblock, delist, removeme
  mail-daemon, servicedesk, service-desk, itsupport
`);

/** What stands right before a recipient. */
export const RECIPIENT_PREFIXES: readonly string[] = [
  'was addressed,',
  ...parsePhrases(`
  dda:smtp=, was addressed, error-for:, rcpt to:, recipient:, recipients:, recipient(s):, recipient, intended recipient:, failed recipient:
  failed recipient(s):, failed address:, failed addresses:, addressed to, addressed to ', was addressed, address:, addresses:
  address(es):, undeliverable to, undelivered to, unknown user:, unknown user, user unknown:, userid:, user id:
  mailbox is full:, delivery to, delivered to, delivered to:, deliver to, deliver to:, deliver message to
  deliver message to:, deliver your message to, deliver mail to, deliver mail to:, delivery failed to
  your message to, your mail to, your email to, your e-mail to, message to, message to:, mail to, e-mail to, email to
  sent to, sent to:, reach, attempts:, to:, final-recipient:, original-recipient:, rfc822;, failed:, account:
  mailbox, mailbox:, local mailbox, empfänger:, empfänger, an:, an, adresse:, destinataire:, destinataire
  destinatario:, destinatario, destinatário:, à, para:, para, a, aan, aan:, til, till, do, kome, адрес:, адресу
  получатель:, кому:, 宛先:, 宛先：, 宛先, 收件人:, 收件人：, 收件人, 收信人：, 受取人:, 수신자:, 받는 사람:, 受信者:
`),
];

/** What stands right before the address that a forwarded message had at first. */
export const ORIGINAL_RECIPIENT_PREFIXES: readonly string[] = parsePhrases(`
  expanded from:, expanded from, generated from, originally addressed to, original address:, original recipient:,
  forwarded from, aliased from, alias of, resent from
`);

/** By itself at the beginning of a line: the returned message's header. */
export const QUOTED_TO_PREFIXES: readonly string[] = parsePhrases(
  'to:, an:, à:, para:, a:, aan:, til:, till:, do:, komu:, кому:, 宛先:, 收件人:',
);

/** What stands right before the sender. */
export const SENDER_PREFIXES: readonly string[] = parsePhrases(`
  mail from:, mail from, from:, sender:, reply-to:, return-path:, from, envelope-from, envelope-sender, von:, de:
  da:, od:, от:, 差出人:, 发件人:, 发件人：, 寄件者:, 보낸 사람:, cc:, afzender:, expéditeur:, remitente:
`);

/** Words of an invitation to ask somebody. */
export const CONTACT_PHRASES: readonly string[] = parsePhrases(`
  contact, questions, forward this, forward the, problems, assistance, for help, for more information, please send
  please write, please email, please e-mail, reply to, report this, mailto:, kontakt, wenden sie, contactez, contacte
  message-id, message id, references:, in-reply-to, delisted, unblocked, be removed, instead, new address
  administrator
`);

/** A line of one of these by itself begins the returned message; so does one with dashes around it. */
export const RETURNED_MESSAGE_HEADINGS: readonly string[] = parsePhrases(`
  copy of the message, copy of your message, copy of the original, copy of your, original message, original mail
  original email, original e-mail, returned message, returned mail, message header follows, message headers follow
  headers of the original, header of the original, header and top, text of your message, text of the original
  message text follows, undeliverable message, undelivered message, unsent message, message follows, original headers
  message headers, message header, message contents, start of message, forwarded message, the source mail
  returned content, mail message follows, your message follows, lines of your message, first part of the message
  first part of your message, lines of your original, text follows, headers follow, header follows
  ursprüngliche nachricht, originalnachricht, kopie ihrer nachricht, kopie der nachricht, message d'origine
  message original, copie de votre message, mensaje original, copia de su mensaje, mensagem original
  messaggio originale, oorspronkelijke bericht, oorspronkelijk bericht, исходное сообщение, исходное письмо
  копия письма, копия вашего письма, 原始邮件, 原郵件, 元のメッセージ, 送信されたメッセージ, 원본 메시지
`);

/** Header fields by which a returned message without a heading begins. */
export const RETURNED_MESSAGE_FIELDS: readonly string[] = parsePhrases(`
  received: from, received: by, received: (, return-path:, dkim-signature:
`);
