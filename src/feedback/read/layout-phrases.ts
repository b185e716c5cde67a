/**
 * Phrases about the layout of free-text bounce messages, in lower case: text before a recipient, the beginning of the
 * returned message, and persons who are not the recipient. causes.ts contains the phrases about causes.
 */
import { parsePhrases } from '../../classify/text.ts';

/**
 * Local parts of support contacts and of programs. An address with one of these local parts is never the failed
 * recipient.
 */
export const CONTACT_LOCAL_PARTS: readonly string[] = parsePhrases(`
  postmaster, abuse, mailer-daemon, mailerdaemon, hostmaster, webmaster, support, helpdesk, help, mdaemon, no-reply
  noreply, do-not-reply, donotreply, microsoftexchange, listserv, majordomo, antispam, unblock, delist, removeme
  mail-daemon, servicedesk, service-desk, itsupport
`);

/** Text directly before a failed recipient. */
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

/** Text directly before the original address of a forwarded message. */
export const ORIGINAL_RECIPIENT_PREFIXES: readonly string[] = parsePhrases(`
  expanded from:, expanded from, generated from, originally addressed to, original address:, original recipient:,
  forwarded from, aliased from, alias of, resent from
`);

/** Beginnings of the To line in the header of the returned message. */
export const QUOTED_TO_PREFIXES: readonly string[] = parsePhrases(
  'to:, an:, à:, para:, a:, aan:, til:, till:, do:, komu:, кому:, 宛先:, 收件人:',
);

/** Text directly before the address of the sender. */
export const SENDER_PREFIXES: readonly string[] = parsePhrases(`
  mail from:, mail from, from:, sender:, reply-to:, return-path:, from, envelope-from, envelope-sender, von:, de:
  da:, od:, от:, 差出人:, 发件人:, 发件人：, 寄件者:, 보낸 사람:, cc:, afzender:, expéditeur:, remitente:
`);

/** Phrases that ask the reader to contact a person. */
export const CONTACT_PHRASES: readonly string[] = parsePhrases(`
  contact, questions, forward this, forward the, problems, assistance, for help, for more information, please send
  please write, please email, please e-mail, reply to, report this, mailto:, kontakt, wenden sie, contactez, contacte
  message-id, message id, references:, in-reply-to, delisted, unblocked, be removed, instead, new address
  administrator
`);

/** Headings at the beginning of the returned message. A heading is alone on a line or between dashes. */
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

/** Header fields that begin a returned message without a heading. */
export const RETURNED_MESSAGE_FIELDS: readonly string[] = parsePhrases(`
  received: from, received: by, received: (, return-path:, dkim-signature:
`);
