/**
 * Rules that derive the cause of a failure from the free text of bounce messages. src/classify/rules.ts contains the
 * rules for SMTP replies. The rules of this file cover the text around replies, and languages other than English. The
 * first matching rule determines the cause. The order is: temporary failures of the mailbox, refusals of the message or
 * sender, missing mailboxes, failures of the connection.
 *
 * Phrases are in lower case and match at the beginning of a word (phrases.ts). A test checks every sample against its
 * rule.
 */
import type { FailureCategory } from '../../model/failure.ts';
import { MAILBOX_FULL_PHRASES, MAILBOX_MISSING_PHRASES } from './mailbox-phrases.ts';
import { parsePhrases } from './phrases.ts';

/**
 * The cause of a failure. `missing`: the mailbox or the host does not exist. `refused`: the failure is permanent for
 * another reason. `temporary`: a later attempt may succeed.
 */
export type Cause = 'missing' | 'refused' | 'temporary';

export interface CauseRule {
  readonly name: string;
  readonly cause: Cause;
  /**
   * The category of the failure, unless the text contains a phrase of a more specific category (`CATEGORY_PHRASES`).
   */
  readonly category: FailureCategory;
  /**
   * If true, the phrases are vague: a specific status code, or a reply that matches a rule for SMTP replies, takes
   * precedence over this rule.
   */
  readonly isVague?: true;
  /** The rule matches only texts that contain one of these phrases. */
  readonly phrases: readonly string[];
  /** The rule matches no text that contains one of these phrases. */
  readonly exceptPhrases?: readonly string[];
  readonly samples: readonly string[];
}

export const CAUSE_RULES: readonly CauseRule[] = [
  {
    name: 'mailbox full',
    cause: 'temporary',
    category: 'mailbox-full',
    phrases: MAILBOX_FULL_PHRASES,
    samples: [
      "The recipient's mailbox is full and cannot take messages now.",
      'user is over quota: 52428800 of 52428800',
      'Das Postfach des Empfängers ist voll.',
      'La boîte aux lettres est pleine.',
      '宛先のメールボックスがいっぱいのため、受信できませんでした。',
      'Превышена квота почтового ящика',
      '对方邮箱已满，暂时无法接收。',
    ],
  },
  {
    name: 'mailbox temporarily closed',
    cause: 'temporary',
    category: 'network',
    phrases: [
      'found, try again',
      ...parsePhrases(`
      temporarily disabled, temporarily suspended, temporarily inactive, temporarily unavailable, temporarily locked
      temporarily closed, temporarily deferred, temporarily rejected, temporarily over, temporarily unable
      is temporarily, temporary failure, temporary error, temporary problem, temporary lookup
      temporary local problem, temporary system problem, temporary resources, temporary system, temporary dns
      temporary delivery failure, transient failure, transient error, try again later, try later, try again in
      please retry, greylist, graylist, too many connections, too busy, server busy, server is busy
      receiving mail at a rate, rate limit, ratelimit, too many messages too quickly, system not accepting
      not accepting network, currently unavailable, not currently available, service unavailable try
      service not available, under maintenance, vorübergehend, temporärer fehler, versuchen sie es später
      temporairement, temporaire, réessayer plus tard, ultérieurement, temporalmente, error temporal
      intente más tarde, inténtelo más tarde, temporariamente, tente novamente mais tarde, temporaneamente
      temporaneo, riprovare più tardi, tijdelijk, tillfälligt, midlertidig, väliaikaisesti, tymczasow, dočasn
      átmeneti, geçici, временно, временная ошибка, повторите попытку, 一時的, しばらくしてから, 暂时, 稍后, 暫時
      稍後, 일시적
    `),
    ],
    exceptPhrases: parsePhrases('not temporary, no temporary, non-temporary, nicht vorübergehend'),
    samples: [
      'This mailbox is temporarily suspended.',
      'Der Empfang ist vorübergehend gestört.',
      'サーバーが一時的に利用できません',
      'The server is busy; please try again later.',
    ],
  },
  {
    name: 'message refused',
    cause: 'refused',
    category: 'policy',
    phrases: parsePhrases(`
      spam, junk mail, blacklist, black list, blocklist, block list, blocked, denylist, dnsbl, rbl, reputation
      spamhaus, spamcop, barracuda, unsolicited, virus detected, virus found, virus infected, virus-infected, contained a virus, contains a virus,
      contains virus, a virus, virus name, unsigned, invalid-sender, malware, phishing, suspicious, infected, banned, prohibited
      policy violation, policy reasons, violates policy, violation of policy, local policy, security policy
      policy restrictions, company policy, against policy, message content, content filter, content rejected
      content reject, contents rejected, content violation, offensive content, attachment type, attachment not
      attachments not, attachments are not, attachment blocked, dangerous attachment, forbidden attachment, filetype
      file type not, not accepting mail from, not accepting mail with, not accept mail from, do not accept mail from
      does not accept mail from, doesn't accept mail from, refuses mail from, refused mail from
      only accepts mail from, only accept mail from, accepts mail from certain, not authorized to send
      not allowed to send, not permitted to send, permission to send, not permitted to relay, sender is not
      sender not, sender address, sender verify, sender denied, sender rejected, sender domain, sender blocked
      invalid sender, from address, relaying, relay access, relay denied, unable to relay, not relay, cannot relay
      relay not, open relay, rcpthosts, spf, dkim, dmarc, authentication required, must authenticate
      authentication checks, unauthenticated, reverse dns, ptr record, rdns, restricted recipient, restricted to
      delivery restrictions, delivery not authorized, not authorized, access denied, access rule
      administrative prohibition, recipnotpermitted, restriction, awaiting moderation, message refused
      refused by recipient, recipient preferences, have permission to post, challenge, spf-fehler, unerwünschte werbung, richtlinie, abgelehnt wegen, politique de
      indésirable, correo no deseado, política de, posta indesiderata, spamverdacht, проверку на спам, спам
      отклонено политикой, 迷惑メール, 垃圾邮件, 垃圾郵件, 拒收, 스팸
    `),
    exceptPhrases: parsePhrases('recipient address rejected: access denied, antispam recipient check'),
    samples: [
      'The message was classified as spam and refused.',
      'You are not allowed to send mail to this group.',
      'Relaying is not permitted for this destination.',
      'メッセージは迷惑メールと判断されました',
    ],
  },
  {
    name: 'message too large',
    cause: 'refused',
    category: 'size',
    phrases: parsePhrases(`
      message too large, message is too large, message too big, message is too big, mail too large, mail is too large
      too large message, message size, maximum message size, maximum size, size limit, size exceeds, size exceeded
      exceeds size, exceeds maximum, exceeded maximum message, exceeds the maximum, exceeded maximum inbound
      message length exceeds, larger than the, too long message, message file too big, max message
      nachricht ist zu groß, nachricht zu groß, message trop volumineux, trop grand, mensaje demasiado grande
      mensagem muito grande, messaggio troppo grande, bericht is te groot, слишком большой, слишком велик
      サイズが大き, サイズ制限, 邮件太大, 邮件过大
    `),
    exceptPhrases: parsePhrases(
      'exceeded maximum delivery, exceeded maximum time, exceeded maximum hop, exceeds maximum hop, exceeded maximum number',
    ),
    samples: ['Your message exceeds the maximum size that this server accepts.', 'Die Nachricht ist zu groß.'],
  },
  {
    name: 'mail loop or protocol',
    cause: 'refused',
    category: 'unknown',
    phrases: parsePhrases(`
      mail loop, mail loops back, loops back to, loop detected, looping, too many hops, hop count, too many received
      routing loop, local configuration error, maximum hop, mail forwarding loop, config error, system config error
      remote protocol error, smtputf8, conversion failed, internationalized, command not recognized
      syntax error in message, header syntax, malformed message, bare lf, missing from, no header
    `),
    samples: ['554 too many hops 26 (25 max)', 'mail for host.example loops back to myself'],
  },
  {
    name: 'host unknown',
    cause: 'missing',
    category: 'domain',
    phrases: parsePhrases(`
      host unknown, unknown host, host not found, no such host, hostname not found, unknown mail host
      bad destination host, host or domain name not found, host or domain not found, domain not found
      domain was not found, domain name not found, unknown domain, domain unknown, no such domain, nonexistent domain
      non-existent domain, non-existant domain, domain does not exist, domain doesn't exist, domain is not found
      domain isn't found, domain couldn't be found, domain could not be found, couldn't find any host
      couldn't find a mail exchanger, unable to find the domain, invalid domain, invalid destination domain
      domain name is invalid, all relevant mx records point to non-existent hosts, nxdomain
      does not accept mail (nullmx), null mx, domain of the recipient does not exist, recipient domain does not exist
      mail domain mentioned in email address is unknown, destination domain does not exist
      domain not listed, bad domain, host does not exist
      domain has no mail exchangers, no mx record, no valid hosts, illegal host, does not exist in dns
      name or service not known, can't find domain, cannot find your recipient's, unbekannte domain
      domain existiert nicht, domain nicht gefunden, rechner unbekannt, domaine inconnu, domaine n'existe pas
      dominio desconocido, dominio no existe, dominio inexistente, domínio não existe, domínio inexistente
      dominio sconosciuto, dominio non esiste, onbekend domein, nieznana domena, домен не существует, домен не найден
      ドメインが見つかりません, ドメインが存在しません, 域名不存在, 找不到域名
    `),
    exceptPhrases: parsePhrases(`
      try again, temporar, servfail, sender domain, helo, ehlo, client host, your domain, from domain
      domain of sender, sender address, reverse
    `),
    samples: [
      'The address uses a domain that could not be found: host not found.',
      'Die Domain existiert nicht.',
      'домен не найден',
    ],
  },
  {
    name: 'no such mailbox',
    cause: 'missing',
    category: 'mailbox-unknown',
    phrases: MAILBOX_MISSING_PHRASES,
    exceptPhrases: parsePhrases(`
      sender does not exist, does not exist in dns, sender address, mail from, from address, relaying, backend
      could not be verified, callback, callout, reverse dns, policy does not exist
    `),
    samples: [
      'There is no one here with that name: no such user.',
      'The account has been closed.',
      "L'adresse que vous avez saisie n'existe pas.",
      'El usuario no existe en este servidor.',
      'Die Adresse ist unbekannt.',
      'このアドレスは存在しません。',
      '收件人不存在，请检查地址。',
      'Такого пользователя нет: пользователь не найден',
    ],
  },
  {
    name: 'delivery stopped after retries',
    cause: 'temporary',
    category: 'network',
    isVague: true,
    phrases: parsePhrases(`
      retry timeout exceeded, retry time not reached, long failure period, message expired, expired from the queue
      expired in queue, has expired, delivery time expired, maximum-time-expired, delivery expired, delivery timeout
      delivery timed out, queue timeout, message timed out, too long in the queue, in the queue too long
      been in queue, been in the queue, in queue too long, maximum time in queue, queue lifetime, queue expired
      exceeded maximum time, exceeded maximum delivery attempts, exceeded the maximum time, after multiple retries
      multiple attempts, repeated attempts, numerous attempts, delivery failed 20 attempts, after several attempts
      all attempts, unable to deliver message for, for a long time, has been failing, have been failing
      could not be delivered for, undeliverable for, not be delivered within, not been able to deliver for
      was aborted after, tried for, retried for, not be delivered after, not been collected after, for more than
      for the last, connection timed out, connection refused, connection reset, connection lost, connection dropped
      connection failed, connection closed, connection failure, connection error, lost connection
      operation timed out, timed out, timeout, network is unreachable, network unreachable, no route to host
      host is unreachable, host unreachable, host is down, no answer from host, not responding, did not respond
      isn't responding, does not respond, doesn't respond, could not connect, couldn't connect, unable to connect
      cannot connect, can't connect, failed to connect, bad connection, able to establish an smtp connection
      unable to contact, could not be reached at this time, conversation with, while talking, dns error, dns lookup
      dns server, lookup failed, lookup failure, name server error, nameserver error, no nameserver, server failure
      servfail, mailbox locked, resources, out of memory, internal error, internal server error, system error
      software error, deferred, mail system problem, i/o error, input/output error, cannot open, can't open
      could not open, can't create, cannot create, database error, ldap, zeitüberschreitung, verbindung abgelehnt
      verbindung konnte nicht, nicht erreichbar, délai dépassé, délai expiré, connexion refusée, tiempo de espera
      conexión rechazada, conexão recusada, tempo esgotado, tempo limite, connessione rifiutata, tempo scaduto
      verbinding geweigerd, превышено время, соединение, タイムアウト, 接続できません, 接続でき, 连接超时, 超时
      無法連接, 无法连接, 시간 초과
    `),
    samples: [
      'I tried for five days and the host did not respond.',
      'retry timeout exceeded',
      'Delivery was aborted after 72 hours.',
      'Zeitüberschreitung beim Verbindungsaufbau',
    ],
  },
];

/**
 * Phrases of categories that are more specific than `generalCategory`. An entry applies only to rules whose
 * category is equal to `generalCategory`. The first entry with a phrase that the text contains determines the category.
 */
export const CATEGORY_PHRASES: readonly {
  readonly category: FailureCategory;
  readonly generalCategory: FailureCategory;
  readonly phrases: readonly string[];
}[] = [
  {
    category: 'reputation',
    generalCategory: 'policy',
    phrases: parsePhrases(`
      blacklist, black list, blocklist, block list, denylist, dnsbl, rbl, reputation, spamhaus, spamcop, barracuda
    `),
  },
  {
    category: 'auth',
    generalCategory: 'policy',
    phrases: parsePhrases(`
      unsigned, invalid-sender, spf, dkim, dmarc, authentication required, must authenticate, authentication checks, unauthenticated, reverse dns
      ptr record, rdns, relaying, relay access, relay denied, unable to relay, not relay, cannot relay, relay not
      open relay, not permitted to relay, rcpthosts
    `),
  },
  {
    category: 'content',
    generalCategory: 'policy',
    phrases: parsePhrases(`
      spam, junk mail, unsolicited, virus, malware, phishing, suspicious, infected, message content, content filter
      content reject, contents rejected, content violation, offensive content, attachment, filetype, file type
      unerwünschte werbung, indésirable, correo no deseado, posta indesiderata, спам, 迷惑メール, 垃圾邮件, 垃圾郵件, 스팸
    `),
  },
  { category: 'greylisted', generalCategory: 'network', phrases: parsePhrases('greylist, graylist') },
  {
    category: 'throttled',
    generalCategory: 'network',
    phrases: parsePhrases(
      'too many connections, receiving mail at a rate, rate limit, ratelimit, too many messages too quickly',
    ),
  },
  {
    category: 'mailbox-disabled',
    generalCategory: 'network',
    phrases: parsePhrases('temporarily disabled, temporarily suspended, temporarily inactive, temporarily locked'),
  },
  {
    category: 'mailbox-disabled',
    generalCategory: 'mailbox-unknown',
    phrases: parsePhrases(`
      disabled, inactive, mailbox is not active, mailbox not active, suspended, deactivated, mailbox is closed
      mailbox closed, account has been closed, account is closed, account closed, closed account, terminated
      account is not active, account not active, account expired, account has expired, discontinued
    `),
  },
];
