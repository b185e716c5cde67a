/** In lower case. */
import { parsePhrases } from '../../classify/phrases.ts';

export const FAILURE_PHRASES: readonly string[] = parsePhrases(`
  undeliver, unzustellbar, non-deliver, nondeliver, non deliver, not deliverable, delivery failure, delivery failed
  delivery error, delivery has failed, delivery problem, delivery aborted, delivery impossible
  delivery to the following, delivery unsuccessful, delivery report, delivery status notification
  delivery status report, mail delivery, message delivery, mail failure, mail failed, failed mail, failed message
  failed delivery, failed recipient, failed address, failed permanently, failed to deliver, failure notice
  failure delivery, failure report, failure of delivery, mail error, error sending, error during delivery
  couldn't be delivered, could not deliver, couldn't deliver, couldn't be sent, could not be processed
  could not be completed, could not be reached, cannot be delivered, can't be delivered, cannot deliver
  cannot be sent, can't deliver, wasn't delivered, not been delivered, not delivered, not be delivered, not be sent
  not able to deliver, unable to deliver, unable to be delivered, unable to send, unable to forward, unable to reach
  able to deliver your message, able to deliver the, was unable, did not reach, didn't reach, did not receive
  returned mail, returned message, returned email, returned to sender, return to sender, returning mail
  returning message, returning to sender, returned because, returned for, mail returned, message returned
  mail rejected, message rejected, email rejected, has been returned, was returned, being returned, is returned
  bounced, bounce message, bounce notification, permanent error, permanent failure, permanent fatal
  permanently failed, fatal error, delivery attempts failed, have failed, recipients failed, addresses failed
  address failed, recipient failed, encountered an error, error occurred while
  an error has occurred while attempting, an error was detected, following error, was rejected, has been rejected
  were rejected, rejected your message, rejected by, giving up, given up, recipients of your message, recipients are
  does not have a final email delivery point, unrouteable, mail was not accepted, message was not accepted
  was aborted, has expired, processing error, transcript of session follows, could not find a gateway
  problem delivering, problems delivering, nicht zugestellt, nicht zustellbar, zustellung fehlgeschlagen
  zustellung ist fehlgeschlagen, zustellfehler, zustellung nicht, fehler bei der zustellung, nicht ausgeliefert
  nicht übermittelt, konnte nicht, non remis, n'a pas pu être, n'ont pas pu être, n'a pu être, pas été remis
  échec de la remise, échec de remise, échec de distribution, échec de la distribution, échec d'envoi
  échec de l'envoi, non distribué, non délivré, impossible de remettre, impossible de livrer, retour de courrier
  no se pudo entregar, no se ha podido entregar, no ha podido ser entregado, no pudo ser entregado, no se pudo enviar
  no se ha entregado, no fue entregado, no entregado, error de entrega, fallo de entrega, fallo en la entrega
  no se puede entregar, no ha sido posible entregar, devuelto, não foi entregue, não pôde ser entregue
  não pode ser entregue, não foi possível entregar, nao foi possivel entregar, falha na entrega, falha de entrega
  falha ao entregar, erro na entrega, devolvida, não entregue, non recapitabile, impossibile recapitare
  mancata consegna, mancato recapito, non è stato consegnato, non consegnato, non è stato possibile consegnare
  non è stato possibile recapitare, errore di consegna, messaggio non recapitato, notifica di mancata, onbestelbaar
  niet worden bezorgd, niet worden afgeleverd, niet bezorgd, niet afgeleverd, niet worden besteld, kan niet worden
  inte leverera, gick inte att leverera, kunne ikke leveres, kan ikke leveres, ikke levert, ikke leveret
  ei voitu toimittaa, toimitus epäonnistui, nie można dostarczyć, nie mogła zostać dostarczona
  nie została dostarczona, niedoręczona, niedostarczona, nie dostarczono, nedoručitelná, nelze doručit, nedoručeno
  nebyla doručena, nem kézbesíthető, kézbesítés sikertelen, nem sikerült kézbesíteni, teslim edilemedi, iletilemedi
  gönderilemedi, nu a putut fi livrat, δεν παραδόθηκε, δεν ήταν δυνατή η παράδοση, не было доставлено
  не может быть доставлено, не удалось доставить, невозможно доставить, невозможна доставка, ошибка доставки
  ошибка при доставке, недоставленное, не доставлен, не вдалося доставити, 配信できません, 配信不能, 配信に失敗, 配信エラー, 配信されません
  送信できません, 送信に失敗, 送信エラー, 送信されません, 届きません, 届けられません, お届けできません, 配送できません, 配送に失敗, 配達できません, 送達できません, 不達, エラーメール, 戻りました, 返送
  无法投递, 无法送达, 无法发送, 无法递送, 无法传递, 无法传送, 退信, 退回, 投递失败, 发送失败, 传递失败, 未送达, 未能送达, 無法投遞, 無法傳送, 無法送達, 無法寄達, 退件, 寄送失敗, 傳送失敗
  未傳遞, 반송, 전송 실패, 전송되지, 전송할 수 없, 배달되지, 배달할 수 없, 전달되지, 전달할 수 없, 발송 실패, לא נמסר, تعذر تسليم, không thể gửi
  gagal terkirim, tidak terkirim
`);

export const DELAY_PHRASES: readonly string[] = parsePhrases(`
  not yet been delivered, not been delivered yet, not yet delivered, has been delayed, have been delayed, is delayed
  was delayed, message delayed, delayed mail, delivery notification (delay, notification (delay), delivery delay
  mail delayed, delivery status notification(delay), delivery attempts will continue, will continue to try
  will continue trying, will continue to attempt, will continue to be, will keep trying, will be retried
  be retried for, will retry, we will keep, still trying, still being attempted, still being retried
  still being tried, still in the queue, still attempting, will try again, will try to deliver, warning message only
  warning only, this is a warning, advisory-only, has been postponed, is postponed, don't need to resend
  no need to resend, not need to resend, is not a failure, not a permanent failure, not a permanent error
  no permanent failure, temporary non-delivery, no action is required on your part, could not send message for past
  message still undelivered, delayed (still, delayed for, delayed 24 hours, gateway will keep, being queued
  has been queued, remains in the queue, wird weiterhin versucht, wird erneut versucht, versuchen es weiter
  konnte bisher nicht, konnte noch nicht, noch nicht ausgeliefert, weitere zustellversuche, noch nicht zugestellt
  verzögert, verzögerung, verspätet, nouvelle tentative, nouvelles tentatives, nous réessaierons, n'a pas encore pu
  nous continuerons, continuera d'essayer, n'a pas encore été, pas encore été remis, est retardé, retardée
  remise différée, se seguirá intentando, seguiremos intentando, volveremos a intentar, se volverá a intentar
  se reintentará, aún no ha, todavía no ha, aún no se ha entregado, todavía no se ha, entrega retrasada
  se ha retrasado, demora en la entrega, ainda não foi entregue, está atrasada, atraso na entrega
  non è stato ancora consegnato, non è ancora stato, consegna ritardata, in ritardo, nog niet afgeleverd
  nog niet bezorgd, vertraagd, vertraging, fördröjd, har försenats, forsinket, opóźnion, zpožděn, késik, ertelendi
  gecikti, ещё не доставлено, еще не доставлено, доставка задерживается, задержка доставки, задержано
  будет повторена, будут продолжены, затримано, 配信が遅れ, 遅延, まだ配信され, まだ配達され, まだ届いて, 遅れています, 再試行します, 再試行を続け, 再送します
  再送を試み, 延迟, 延遲, 仍在尝试, 지연
`);

/** They take precedence over a delay. */
export const FINAL_FAILURE_PHRASES: readonly string[] = parsePhrases(`
  permanent error, permanent fatal, permanent failure, permanent delivery failure, permanently, given up, gave up
  giving up, not going to try again, will not be retried, will not be delivered, no further attempts
  no more attempts, has been returned, is being returned, returned to sender, endgültig, définitif, définitive
  definitiv, permanente, окончательн, 永続的, 恒久的, 最終的
`);

/** Of a sentence that denies a final failure or speaks of one that may come. */
export const UNREAL_FAILURE_PHRASES: readonly string[] = parsePhrases(`
  if, unless, until, in case, should it, should the, whether, not a permanent, not a final, not permanent, not yet permanent
  no permanent, not been permanently, isn't permanent, isn't a permanent, not mean, wenn, falls, sofern, sobald, sollte, bis
  kein endgültig, keine endgültig, keinen endgültig, nicht endgültig, kein dauerhaft, noch nicht, si, s'il, lorsque
  au cas où, en cas de, en cas d', tant que, pas définitif, pas définitiv, pas un échec, pas une erreur, pas d'un échec
  pas d'une erreur, cuando, en caso de, hasta que, no es un, no es una, no se trata de, no es definitiv, no es permanente
  se non, не окончательн, если, ではありません, ではない, でない, 場合, もし
`);

export const AUTO_REPLY_SUBJECTS: readonly string[] = parsePhrases(`
  out of office, out of the office, out-of-office, out of town, ooo:, autoreply, auto-reply, auto reply
  auto response, autoresponse, auto-response, auto-responder, auto responder, autorespond, automatic reply
  automatic response, automatic answer, automated reply, automated response, automated answer, auto:, auto-submitted
  vacation, away from my mail, away from the office, away from my email, away from office, away until, is away
  am away, be away, on leave, annual leave, maternity leave, parental leave, sick leave, on holiday, i'm on
  not in the office, abwesenheit, abwesend, automatische antwort, automatische rückmeldung, bin nicht im büro
  nicht im haus, im urlaub, in urlaub, eingangsbestätigung, empfangsbestätigung, réponse automatique, absence, absent
  en congé, en vacances, accusé de réception, fuera de la oficina, fuera de oficina, respuesta automática
  respuesta automatica, de vacaciones, ausencia, ausente, acuse de recibo, resposta automática, resposta automatica
  ausência, fora do escritório, de férias, risposta automatica, fuori ufficio, fuori sede, assenza, in ferie
  automatisch antwoord, afwezig, niet aanwezig, frånvaro, frånvarande, autosvar, automatiskt svar, automatisk svar
  fravær, ikke til stede, automaattinen vastaus, poissa, lomalla, autoodpowiedź, odpowiedź automatyczna
  automatyczna odpowiedź, poza biurem, nieobecność, na urlopie, automatická odpověď, mimo kancelář, nepřítomnost
  automatikus válasz, házon kívül, otomatik yanıt, ofis dışında, răspuns automat, αυτόματη απάντηση, автоответ
  автоматический ответ, автоматична відповідь, отсутствую, в отпуске, вне офиса, 自動応答, 自動返信, 自動返答, 不在, 休暇, 自动回复, 自動回覆
  自动答复, 外出, 休假, 자동 응답, 자동응답, 자동 회신, 부재중, 휴가, מענה אוטומטי, رد تلقائي, trả lời tự động, thank you for your email
  thank you for your e-mail, thank you for contacting, thank you for your message, thank you for your mail
  thanks for your email, thanks for contacting, thanks for your message, we have received your, we've received your
  your message has been received, your request has been received, received your email, ticket received
  ticket created, new ticket, [ticket, case created, acknowledgement of, acknowledgment of, confirm your message
  confirm your email to, please confirm, please verify your, verification required, verify your email to
  sender verification, challenge, email address change, my email address has changed, your mail requires
  message requires your, anti-spam verification, delivery confirmation requested, read:, lu :, gelesen:, leído:
  lida:, letto:, gelezen:, läst:, læst:, прочитано:, read receipt, disposition notification, return receipt, 开封, 已读:
  開封済み, 읽음:
`);

export const SERVER_SENDERS: readonly string[] = parsePhrases(`
  mailer-daemon, mailer_daemon, mailerdaemon, mailer daemon, postmaster, post_master, mail-daemon, maildaemon, mdaemon, mailadm
  mailsystem, mail-system, mail system, mail delivery, maildelivery, mail.delivery, mail-delivery, bounce
  microsoftexchange, smtpadmin, system administrator, system.administrator, administrator, delivery subsystem
  delivery system, delivery service, internet mail service, mail service, mail_service, mailsweeper, imss, inetgw
  jetmail, mailserver, mail server, smtp, courier mail server, mail router, mail administrator, mailgate, mailmaster
  e-mail gateway, gateway, surfcontrol, mcafee, mailmarshal, mimesweeper, symantec, barracuda
  complaints@email-abuse.amazonses, email-bounces.amazonses
`);

export const DAEMON_MAILBOXES: readonly string[] = parsePhrases(`
  mailer-daemon, mailer_daemon, mailerdaemon, postmaster, post_master, mail-daemon, maildaemon, mdaemon, mailsystem, mail-system
  maildelivery, mail.delivery, mail-delivery, microsoftexchange, smtpadmin
`);

/** Answers repeat the subject of the answered message. */
export const REPLY_PREFIXES: readonly string[] = parsePhrases(`
  re:, re :, aw:, antw:, antwort:, sv:, vs:, odp:, rép:, rép :, rif:, res:, ynt:, ответ:, 回复:, 回复：, 答复:, 答复：, 回覆:, 回覆：, 返信:, 답장:
`);

/** Only automatic replies have them. */
export const AUTO_REPLY_FIELDS: readonly string[] = parsePhrases(`
  x-autoreply, x-autorespond, x-autoresponder, x-auto-response, x-mail-autoreply, x-autoreply-from, x-vacation
  x-ezoutofoffice
`);

export const AUTO_REPLY_PRECEDENCE: readonly string[] = parsePhrases('auto_reply, auto-reply, autoreply');

/** They describe the message, not the failure. */
export const QUOTED_HEADER_PREFIXES: readonly string[] = parsePhrases(`
  received:, return-path:, message-id:, message id:, references:, in-reply-to:, from:, sender:, reply-to:, errors-to:
  cc:, bcc:, delivered-to:, subject:, date:, sent:, sent by:, mime-version:, content-, list-, precedence:, thread-
  x-, dkim-, arc-, authentication-results:, user-agent:, size:, submission time:, internal message id:, arrival-date:
  received-from-mta:, reporting-mta:, original-envelope-id:, last-attempt-date:, betreff:, datum:, von:, gesendet:
  objet:, asunto:, assunto:, oggetto:, onderwerp:, ämne:, emne:, temat:, тема:, от:, дата:, 件名:, 件名：, 主题:
  主题：, 主旨:, 主旨：, 제목:, mail from:, >>> mail from:
`);

/** Never the failed recipient: support contacts and programs. */
export const CONTACT_LOCAL_PARTS: readonly string[] = parsePhrases(`
  postmaster, abuse, mailer-daemon, mailerdaemon, hostmaster, webmaster, support, helpdesk, help, mdaemon, no-reply
  noreply, do-not-reply, donotreply, microsoftexchange, listserv, majordomo, antispam, unblock, delist, removeme
  mail-daemon, servicedesk, service-desk, itsupport
`);

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

/** Directly before the original address of a forwarded message. */
export const ORIGINAL_RECIPIENT_PREFIXES: readonly string[] = parsePhrases(`
  expanded from:, expanded from, generated from, originally addressed to, original address:, original recipient:,
  forwarded from, aliased from, alias of, resent from
`);

export const QUOTED_TO_PREFIXES: readonly string[] = parsePhrases(
  'to:, an:, à:, para:, a:, aan:, til:, till:, do:, komu:, кому:, 宛先:, 收件人:',
);

export const SENDER_PREFIXES: readonly string[] = parsePhrases(`
  mail from:, mail from, from:, sender:, reply-to:, return-path:, from, envelope-from, envelope-sender, von:, de:
  da:, od:, от:, 差出人:, 发件人:, 发件人：, 寄件者:, 보낸 사람:, cc:, afzender:, expéditeur:, remitente:
`);

export const CONTACT_PHRASES: readonly string[] = parsePhrases(`
  contact, questions, forward this, forward the, problems, assistance, for help, for more information, please send
  please write, please email, please e-mail, reply to, report this, mailto:, kontakt, wenden sie, contactez, contacte
  message-id, message id, references:, in-reply-to, delisted, unblocked, be removed, instead, new address
  administrator
`);

/** Alone on a line or between dashes. */
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

/** Begin a returned message without a heading. */
export const RETURNED_MESSAGE_FIELDS: readonly string[] = parsePhrases(`
  received: from, received: by, received: (, return-path:, dkim-signature:
`);
