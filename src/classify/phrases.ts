/** A phrase matches at the beginning of a word, so the lists do not contain every ending. */

export const MAILBOX_FULL_PHRASES: readonly string[] = parsePhrases(`
  mailbox full, mailbox is full, mailbox was full, mailbox has been full, mailbox is currently full, mailbox: full
  full mailbox, mail box full, mail box is full, mailbox is over, inbox full, inbox is full, inbox is out of
  inbox has reached, mailfolder is full, mail folder is full, account is full, account full, user is full
  storage full, mailstore full, mail storage is full, disk full, disk is full, partition full, filesystem full
  file system full, maildir is full, over quota, overquota, over-quota, over his quota, over their quota
  over its quota, over the quota, over the allowed quota, over the storage limit, over the maximum allowed
  above quota, quota exceed, quota exceded, quota has been exceeded, quota is exceeded, quota has exceeded
  quota limit, quota violation, quota full, quota was exceeded, quota issue, quota is full, exceeded quota
  exceeded storage, exceeded the quota, exceeded its quota, exceeded his quota, exceeded their quota
  exceeded his/her quota, exceeded email quota, exceeded its storage, exceeded the storage, exceeded his mailbox
  exceeded its mailbox, exceeded the mailbox, exceed mailbox, exceeds mailbox, exceeds quota, exceed quota
  exceeding quota, exceed the quota, exceeds the quota, exceeds its quota, exceed its quota, exceeds allowed quota
  exceeds receiver's quota, exceed the maximum mailbox size, exceeded maximum mailbox size
  exceeded allocated storage, mailbox has exceeded, mailbox exceeded, mailbox exceeds, mailbox would exceed
  mailbox has reached, mailbox size limit, mailbox limit, mailbox storage limit, mailbox quota, mailbox space
  mail box space, mailbox too large, message would exceed, disk quota, disc quota, storage quota, insufficient disk
  insufficient storage, insufficient system storage, insufficient space, insufficient quota, not enough storage
  not enough space, not enough disk, not enough room, not enough quota, no space left, no storage space
  no more space, no room in mailbox, out of storage, out of space, out of disk, space not enough, reached its quota
  reached quota, reached his quota, reached their quota, reached the quota, user has too many messages
  has too much mail, too much mail data, too many messages in mailbox, storage allocation exceeded
  storage limit exceeded, errno=enospc, mail quota, boîte aux lettres pleine, boîte pleine, boite pleine
  boîte de réception pleine, boîte aux lettres est pleine, boite aux lettres est pleine
  boîte de réception est pleine, messagerie pleine, messagerie est pleine, quota dépassé, dépasse le quota
  dépassé son quota, dépassement de quota, postfach voll, postfach ist voll, postfach überfüllt
  postfach des empfängers ist voll, mailbox ist voll, speicherplatz, quota überschritten, speicherlimit, kontingent
  buzón lleno, buzon lleno, buzón está lleno, buzón de correo está lleno, buzón del destinatario está lleno
  cuota excedida, cuota superada, excedido su cuota, excede la cuota, superado la cuota, caixa postal cheia
  caixa postal lotada, caixa de correio cheia, caixa de entrada cheia, caixa postal está cheia, cota excedida
  quota excedida, casella piena, casella di posta piena, casella è piena, casella di posta è piena
  casella postale piena, mailbox piena, quota superata, postvak is vol, postvak vol, postbus is vol, mailbox is vol
  mailbox vol, brevlådan är full, brevlåda är full, postkassen er fuld, postkassen er full, postboksen er full
  postilaatikko on täynnä, skrzynka pełna, skrzynka jest pełna, skrzynka odbiorcy jest pełna, przepełnion
  schránka je plná, plná schránka, překročena kvóta, postafiók megtelt, postaláda megtelt, posta kutusu dolu
  kotası dol, kota aşıl, căsuța este plină, ящик заполнен, переполнен, превышена квота, превышен размер почтового
  превысил квот, скринька переповнена, メールボックスがいっぱい, 受信トレイがいっぱい, 受信箱がいっぱい, 受信トレイの容量, 受信トレイに空き, メールボックスの容量, メールボックス容量
  容量を超え, 容量が超え, 容量オーバー, 容量超過, 空き容量, 邮箱已满, 邮箱空间已满, 信箱已满, 邮箱容量, 空间不足, 郵箱已滿, 信箱已滿, 信箱空間, 信箱容量, 메일함이 가득, 메일 용량, 용량 초과
  용량이 초과, תיבת הדואר מלאה, صندوق البريد ممتلئ, hộp thư đã đầy, gelen kutusu dolu, 받은편지함이 가득, 받은편지함 용량, 收件箱已满, 收件匣已滿
`);

export const MAILBOX_DISABLED_PHRASES: readonly string[] = parsePhrases(`
  mailbox is inactive, mailbox inactive, mailbox is disabled, mailbox disabled, mailbox has been disabled
  mailbox is not active, mailbox not active, mailbox is closed, mailbox closed, user is inactive, user inactive
  user disabled, user is disabled, user account disabled, user account is disabled, user is terminated
  user terminated, user suspended, user is suspended, recipient disabled, deactivated mailbox
  disabled or discontinued, inactive user, inactive recipient
`);

/** In a reply, it can be the account of this service at the relay. */
export const ACCOUNT_DISABLED_PHRASES: readonly string[] = parsePhrases(`
  account is disabled, account disabled, account has been disabled, account has been deactivated
  account has been suspended, account has been closed, account has been terminated, account is closed, account closed
  account is inactive, account inactive, account is not active, account not active, account is suspended
  account suspended, account terminated, account expired, account has expired, account deactivated
  account that you tried to reach is disabled, closed account, inactive account, discontinued
`);

export const MAILBOX_MISSING_PHRASES: readonly string[] = parsePhrases(`
  user unknown, unknown user, unknown local user, unknown local-part, unknown local part, unknown recipient
  recipient unknown, recipients unknown, unknown mailbox, mailbox unknown, unknown address, address unknown
  addressee unknown, unknown account, account unknown, unknown or illegal alias, unknown virtual, unknown customer
  unknown in virtual, unknown in local, unknown in relay, user not known, no such user, no such mailbox
  no such recipient, no such address, no such account, no such person, no such e-mail, no such email
  no such customer, no such alias, no such name, no such id, no such local, no user by that name, no user with
  no mailbox by that name, no mailbox for, no mailbox found, no mailbox here, no account by that name
  no account with, no local mailbox, no recipient by that name, no one by that name, no person by that name
  no valid recipient, no valid address, nobody by that name, invalid recipient, invalid mailbox
  invalid final delivery userid, invalid local part, invalid local address, recipient invalid, user invalid
  recipient is invalid, recipient address is invalid, mailbox is invalid, mailbox invalid, bad destination mailbox
  bad recipient, bad destination email, bad destination address, illegal user, illegal recipient, wrong recipient
  mailbox not found, mailbox does not exist, mailbox doesn't exist, mailbox not exist, mailbox no longer
  mailbox has been removed, mailbox deleted, mailbox has been deleted, user not found, user was not found
  user is not found, user cannot be found, user does not exist, user doesn't exist, user don't exist, user not exist
  user doesnt exist, user(s) account, user is no longer, user no longer, user has left, user left, user account has
  user not listed, user not local, not a user, isn't a user, not a local user, recipient not found
  recipient was not found, recipientnotfound, recipnotfound, recipient does not exist, recipient doesn't exist
  recipient not exist, recipient no longer, recipient is not exist, recipient name is not recognized
  recipient not recognized, recipient is not recognized, recipient not known, recipient could not be found
  recipient cannot be found, recipient ok not found, recipients was rejected because the address
  address rejected: user, address not found, address was not found, address is not found, address cannot be found
  address couldn't be found, address could not be found, address not recognized, address does not exist
  address doesn't exist, address not exist, address no longer, address is no longer, address is not in use
  address not listed, address is not listed, address you entered couldn't be found, address that does not exist
  address that doesn't exist, addresses that do not exist, account does not exist, account doesn't exist
  account not found, account was not found, account has been removed, account has been deleted, account is no longer
  account no longer, account that you tried to reach does not exist, account you tried to reach is
  account you tried to contact does not exist, not a known user, not a valid user, not a valid mailbox
  not a valid recipient, not a valid account, not a valid local, not listed in domino directory
  not listed in public name, not in the directory, not in directory, does not have an account
  doesn't have an account, have no account, has no account, has no mailbox, no longer employed, has left the company
  does not like recipient, unable to find user, unable to find recipient, could not find user, cannot find user
  deleted user, mailbox moved, undeliverable address, unbekannter empfänger, unbekannter benutzer, unbekannte adresse
  empfänger unbekannt, empfänger ist unbekannt, empfänger existiert nicht, empfänger nicht gefunden
  empfänger wurde nicht gefunden, empfängeradresse existiert nicht, benutzer unbekannt, benutzer existiert nicht
  benutzer nicht gefunden, adresse nicht gefunden, adresse existiert nicht, adresse ist unbekannt, adresse unbekannt
  adresse ist ungültig, ungültige adresse, ungültiger empfänger, postfach existiert nicht, postfach nicht gefunden
  nicht mehr gültig, nicht mehr verfügbar, konto ist deaktiviert, konto existiert nicht, konto wurde gelöscht
  mailbox existiert nicht, utilisateur inconnu, destinataire inconnu, adresse inconnue, adresse introuvable
  destinataire introuvable, adresse invalide, n'est plus valide, n'est plus valable, compte inexistant
  compte désactivé, boîte inexistante, non recensé, boîte inconnue, usuario desconocido, usuario inexistente
  correo inexistente, usuario no existe, destinatario desconocido, destinatario no existe, destinatario inexistente
  buzón no existe, buzón inexistente, dirección no existe, dirección desconocida, dirección inválida
  no existe el usuario, cuenta no existe, cuenta desactivada, usuário desconhecido, usuário inexistente
  usuário não existe, usuário não encontrado, usuario desconhecido, destinatário desconhecido
  destinatário inexistente, destinatário não existe, destinatário não encontrado, endereço não existe
  endereço inexistente, endereço inválido, endereço não encontrado, conta não existe, conta inexistente
  conta desativada, caixa postal inexistente, utente sconosciuto, utente non trovato, destinatario sconosciuto
  indirizzo sconosciuto, indirizzo non trovato, indirizzo non valido, casella non esiste, inesistente
  onbekende gebruiker, onbekende ontvanger, gebruiker onbekend, gebruiker bestaat niet, ontvanger onbekend
  onbekend adres, adres onbekend, adres bestaat niet, okänd användare, okänd mottagare, finns inte, hittades inte
  ukjent mottaker, ukjent bruker, finnes ikke, ukendt bruger, ukendt modtager, findes ikke, blev ikke fundet
  tuntematon vastaanottaja, tuntematon käyttäjä, ei löydy, ei löytynyt, ei ole olemassa, nieznany użytkownik
  nieznany adresat, nieznany odbiorca, nie istnieje, nie znaleziono, neznámý uživatel, neznámý příjemce, neexistuj
  nebyla nalezena, ismeretlen felhasználó, ismeretlen címzett, nem létezik, nem található, kullanıcı bulunamadı
  bilinmeyen kullanıcı, böyle bir kullanıcı, alıcı bulunamadı, mevcut değil, utilizator necunoscut, nu există
  άγνωστος χρήστης, δεν υπάρχει, пользователь не найден, пользователь не существует, пользователь неизвестен
  неизвестный пользователь, получатель не найден, получатель не существует, неизвестный получатель
  нет такого пользователя, такого пользователя нет, адрес не существует, адрес не найден, ящик не существует
  ящик не найден, ящика не существует, аккаунт заблокирован, ящик заблокирован, неизвестный адрес, не зарегистрирован
  користувача не знайдено, не існує, ユーザーが見つかりません, ユーザが見つかりません, ユーザーが存在しません, アドレスが見つかりません, アドレスが存在しません, アドレスが間違
  アドレスが正しく, 宛先不明, あて先不明, 宛先が見つかりません, 宛先が存在しません, 受信者が見つかりません, 見つかりませんでした, 用户不存在, 用户名不存在, 收件人不存在, 地址不存在, 邮箱不存在, 信箱不存在
  帐号不存在, 账号不存在, 帐户不存在, 找不到收件人, 找不到用户, 未找到用户, 用戶不存在, 使用者不存在, 帳號不存在, 地址錯誤, 地址错误, 查無此人, 无此用户, 沒有此用戶, 존재하지 않는, 존재하지 않습니다
  수신자를 찾을 수 없, 찾을 수 없습니다, 없는 사용자, לא קיים, غير موجود, không tồn tại, tidak ditemukan, tidak ada, adres bulunamadı
  주소를 찾을 수 없, 找不到地址, 找不到该地址, 找不到此地址, 找不到這個地址, 找不到該地址, user doesn't have a
`);

export const MAILBOX_UNAVAILABLE_PHRASES: readonly string[] = parsePhrases(`
  mailbox not available, mailbox is not available, mailbox unavailable, mailbox is unavailable
  mailbox currently not available, user unavailable, account not available, account is unavailable
  account unavailable
`);

export const VAGUE_MAILBOX_PHRASES: readonly string[] = parsePhrases(`
  does not exist, doesn't exist, do not exist, don't exist, is unknown, is not known, is not a valid, isn't a valid
  is not valid at, not unique in, has no such, no matching, no matches to, no match for, not in our
  not listed in the, were not found, was not found at, wasn't found at, wasn't found or, couldn't be found at
  couldn't be found or is unable, is no longer, no longer a, no longer with, no longer works, not a member
  not our customer, not a customer, no longer valid, no longer in use, invalid address, invalid e-mail, invalid email
  address is invalid, address invalid, bad address, incorrect address, wrong address, address is incorrect
  invalid user, invalid account, address is not valid, address not valid, not a valid address, not a valid e-mail
  not a valid email, address is wrong, address isn't, address has been changed, address has changed, not a registered
  does not have a, name not found, has moved to, deceased, not known at this, no longer exist
  not found by smtp address lookup, existiert nicht, existieren nicht, nicht gefunden werden, ist nicht bekannt
  n'existe pas, n'existe plus, n'a pas été trouvé, no existe, no se encontró, no se ha encontrado
  no se pudo encontrar, não existe, não foi encontrado, nao existe, non esiste, non è stato trovato, bestaat niet
  niet gevonden, niet bekend, не существует, не найден, 存在しません, 存在しない, 見つかりません, 不存在, doesn't have a
`);

export const DOMAIN_MISSING_PHRASES: readonly string[] = parsePhrases(`
  host unknown, unknown host, host not found, no such host, hostname not found, unknown mail host
  bad destination host, domain not found, domain was not found, domain name not found, unknown domain, domain unknown
  no such domain, nonexistent domain, non-existent domain, non-existant domain, domain does not exist
  domain doesn't exist, domain is not found, domain isn't found, domain couldn't be found, domain could not be found
  couldn't find any host, couldn't find a mail exchanger, unable to find the domain
  all relevant mx records point to non-existent hosts, nxdomain, does not accept mail (nullmx), null mx
  domain of the recipient does not exist, mail domain mentioned in email address is unknown, domain not listed
  host does not exist, domain has no mail exchangers, no mx record, no valid hosts, does not exist in dns
  can't find domain, cannot find your recipient's, unbekannte domain, domain existiert nicht, domain nicht gefunden
  rechner unbekannt, domaine inconnu, domaine n'existe pas, dominio desconocido, dominio no existe
  dominio inexistente, domínio não existe, domínio inexistente, dominio sconosciuto, dominio non esiste
  onbekend domein, nieznana domena, домен не существует, домен не найден, ドメインが見つかりません, ドメインが存在しません, 域名不存在, 找不到域名
`);

export const SIZE_PHRASES: readonly string[] = parsePhrases(`
  message size, maximum size, size limit, size exceeds, size exceeded, exceeds size, exceeds maximum
  exceeded maximum message, exceeds the maximum, exceeded maximum inbound, message length exceeds, larger than the
  too long message, max message, nachricht ist zu groß, nachricht zu groß, message trop volumineux, trop grand
  mensaje demasiado grande, mensagem muito grande, messaggio troppo grande, bericht is te groot, слишком большой
  слишком велик, サイズが大き, サイズ制限, 邮件太大, 邮件过大, too large, too big, exceeds fixed
`);

export const CONTENT_PHRASES: readonly string[] = parsePhrases(`
  spam, junk mail, unsolicited, virus detected, virus found, contains virus, a virus, virus name, malware, suspicious
  infected, message content, content filter, content reject, contents rejected, content violation, offensive content
  attachment type, attachment not, attachments not, attachments are not, attachment blocked, dangerous attachment
  forbidden attachment, filetype, file type not, unerwünschte werbung, indésirable, correo no deseado
  posta indesiderata, спам, 迷惑メール, 垃圾邮件, 垃圾郵件, 스팸, phish
`);

export const REPUTATION_PHRASES: readonly string[] = parsePhrases(`
  blacklist, black list, blocklist, block list, denylist, dnsbl, rbl, reputation, spamhaus, spamcop, barracuda
`);

export const AUTHENTICATION_PHRASES: readonly string[] = parsePhrases(`
  unsigned, invalid-sender, not permitted to relay, relaying, relay access, relay denied, unable to relay, not relay
  cannot relay, relay not, open relay, rcpthosts, spf, dkim, dmarc, authentication required, must authenticate
  authentication checks, unauthenticated, reverse dns, ptr record, rdns
`);

export const SENDER_PHRASES: readonly string[] = parsePhrases(`
  sender is not, sender not, sender address, sender verify, sender denied, sender rejected, sender domain
  sender blocked, invalid sender, from address
`);

export const POLICY_PHRASES: readonly string[] = parsePhrases(`
  banned, prohibited, policy violation, policy reasons, violates policy, violation of policy, local policy
  security policy, company policy, against policy, not accepting mail from, not accepting mail with
  not accept mail from, doesn't accept mail from, refuses mail from, refused mail from, only accepts mail from
  only accept mail from, accepts mail from certain, not allowed to send, not permitted to send, permission to send
  restricted recipient, restricted to, not authorized, access denied, access rule, administrative prohibition
  recipnotpermitted, restriction, awaiting moderation, refused by recipient, recipient preferences
  have permission to post, challenge, richtlinie, abgelehnt wegen, politique de, política de, отклонено политикой, 拒收
  投稿する権限がない, غير مصرح لك, nemáte oprávnění, ne soyez pas autorisé, n'êtes pas autorisé, не маєте дозволу, 沒有在此群組張貼
  没有权限, 沒有權限, nicht berechtigt, keine berechtigung, no tenga permiso, no tienes permiso, no tiene permiso
  não tem permissão, não ter permissão, non disponga dell'autorizzazione, non hai il permesso, geen toestemming
  нет разрешения, нет прав, 권한이 없, nie masz uprawnień, izniniz olmayabilir, blocked by, blocked for, blocked ip
  account is blocked
`);

export const TEMPORARY_PHRASES: readonly string[] = parsePhrases(`
  temporarily disabled, temporarily suspended, temporarily inactive, temporarily unavailable, temporarily locked
  temporarily closed, temporarily deferred, temporarily rejected, temporarily over, temporarily unable
  is temporarily, temporary failure, temporary error, temporary problem, temporary lookup, temporary local problem
  temporary resources, temporary system, temporary dns, temporary delivery failure, transient failure
  transient error, try again later, try later, try again in, please retry, too busy, server busy, server is busy
  system not accepting, not accepting network, currently unavailable, not currently available
  service unavailable try, service not available, under maintenance, vorübergehend, temporärer fehler
  versuchen sie es später, temporaire, réessayer plus tard, ultérieurement, temporalmente, error temporal
  intente más tarde, inténtelo más tarde, temporariamente, tente novamente mais tarde, temporaneamente, temporaneo
  riprovare più tardi, tijdelijk, tillfälligt, midlertidig, väliaikaisesti, tymczasow, dočasn, átmeneti, geçici
  временно, временная ошибка, повторите попытку, 一時的, しばらくしてから, 暂时, 稍后, 暫時, 稍後, 일시적
`);

export const LOOP_PHRASES: readonly string[] = parsePhrases(`
  mail loop, loops back to, loop detected, looping, too many hops, hop count, too many received, routing loop
  local configuration error, maximum hop, mail forwarding loop, config error, remote protocol error, smtputf8
  conversion failed, internationalized, command not recognized, syntax error in message, header syntax
  malformed message, bare lf, missing from, no header
`);

export const EXPIRY_PHRASES: readonly string[] = parsePhrases(`
  retry time not reached, long failure period, message expired, expired from the queue, expired in queue, has expired
  delivery time expired, maximum-time-expired, delivery expired, too long in the queue, in the queue too long
  been in queue, been in the queue, in queue too long, maximum time in queue, queue lifetime, queue expired
  exceeded maximum time, exceeded maximum delivery attempts, exceeded the maximum time, after multiple retries
  multiple attempts, repeated attempts, numerous attempts, delivery failed 20 attempts, after several attempts
  all attempts, unable to deliver message for, for a long time, has been failing, have been failing
  could not be delivered for, undeliverable for, not be delivered within, not been able to deliver for
  was aborted after, tried for, retried for, not be delivered after, not been collected after, for more than
  for the last, connection refused, connection reset, connection lost, connection dropped, connection failed
  connection closed, connection failure, connection error, lost connection, timed out, timeout
  network is unreachable, network unreachable, no route to host, host is unreachable, host unreachable, host is down
  no answer from host, not responding, did not respond, isn't responding, does not respond, doesn't respond
  could not connect, couldn't connect, unable to connect, cannot connect, can't connect, failed to connect
  bad connection, able to establish an smtp connection, unable to contact, could not be reached at this time
  conversation with, while talking, dns error, dns lookup, dns server, lookup failed, lookup failure
  name server error, nameserver error, no nameserver, server failure, servfail, mailbox locked, resources
  out of memory, internal error, internal server error, system error, software error, deferred, mail system problem
  i/o error, input/output error, cannot open, can't open, could not open, can't create, cannot create, database error
  ldap, zeitüberschreitung, verbindung abgelehnt, verbindung konnte nicht, nicht erreichbar, délai dépassé
  délai expiré, connexion refusée, tiempo de espera, conexión rechazada, conexão recusada, tempo esgotado
  tempo limite, connessione rifiutata, tempo scaduto, verbinding geweigerd, превышено время, соединение, タイムアウト, 接続でき
  超时, 無法連接, 无法连接, 시간 초과
`);

/** A failed DNS lookup does not prove that the domain does not exist. */
export const FAILED_LOOKUP_PHRASES: readonly string[] = parsePhrases(`
  nameserver, name server, unreachable, servfail, unable to resolve, cannot resolve, cannot be resolved
  could not resolve, could not be resolved, lookup failed, lookup failure, lookup error
`);

/** Causes other than an unknown mailbox. The last line is about counts and volumes of recipients or messages. */
export const OTHER_CAUSE_PHRASES: readonly string[] = [
  ...FAILED_LOOKUP_PHRASES,
  ...parsePhrases(`
    spam, antispam, block, blacklist, black list, reputation, listed$, policy, policies, denied, banned, prohibited
    not permitted, not allowed, unsolicited, abuse, spf, dkim, dmarc, dnsbl, rbl, uribl, surbl, relaying, greylist
    graylist, rate limit, too many, receiving mail, try again, later$, temporar, quota, is full, mailbox full, inbox full
    storage full, disk full, sender, from address, mail from, verify, verified, authenticat, notauthenticat, virus
    antivirus, content, client host, helo, dns, timeout, timed out
    count$, counts$, threshold, exceed, limit$, limits$, limited$, volume, rate$, frequen
  `),
];

/** Subjects other than the recipient’s domain, such as the sender or a relay. */
export const OTHER_SUBJECT_PHRASES: readonly string[] = parsePhrases(`
  mail from, email from, messages from, client, your, relay host, smart host, smarthost, service not available, hostname
`);

export function without(phrases: readonly string[], ...excluded: readonly string[]): readonly string[] {
  return phrases.filter((phrase) => !excluded.includes(phrase));
}

export const BLOCKLIST_PHRASES: readonly string[] = [
  ...REPUTATION_PHRASES,
  ...parsePhrases(`
    sorbs, listed at, listed in, listed on, listed by, blocked using, banned sending ip, has been blocked, is blocked
    was blocked, temporarily blocked, your ip, sender ip, sending ip, your host, your network, from your server
    connections from this host, connections will not be accepted from, unsolicited mail originating, user complaints
    unexpected volume, excessive spam
  `),
];

export const VAGUE_DOMAIN_PHRASES: readonly string[] = parsePhrases(`
  invalid domain, bad domain, domain name is invalid, illegal host, invalid destination domain
  name or service not known, dns lookup failure: host
`);
export const NO_MAIL_PHRASES: readonly string[] = parsePhrases(`
  does not accept mail, does not accept email, does not accept any mail, does not receive mail, does not receive email
  no smtp service, no mail service, unrouteable mail domain, unroutable mail domain
`);
export const NO_SIZE_PHRASES: readonly string[] = parsePhrases(`
  exceeded maximum delivery, exceeded maximum time, exceeded maximum hop, exceeds maximum hop, exceeded maximum number
`);
export const NO_MAILBOX_PHRASES: readonly string[] = parsePhrases(`
  sender does not exist, does not exist in dns, sender address, mail from, from address, relaying, backend
  could not be verified, callback, callout, reverse dns, policy does not exist
`);

/** Entries are separated by commas and line ends. */
export function parsePhrases(text: string): readonly string[] {
  return text
    .split(/[,\n]/)
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}

/** Lower case, single spaces, plain apostrophes. Each address becomes `@`, so that no phrase matches within one. */
export function normalizeText(text: string): string {
  const lowerCaseText = text
    .normalize('NFC')
    .toLowerCase()
    .replaceAll('’', "'")
    .replaceAll('‘', "'")
    .replaceAll('`', "'")
    .replace(QUOTED_ADDRESS, '<@>');
  return lowerCaseText
    .split(/[\s\u2028\u2029]/)
    .filter((word) => word !== '')
    .map((word) => (word.includes('@') && !word.startsWith('#') ? removeAddresses(word) : word))
    .join(' ');
}

/** Its quoted local part can contain spaces (RFC 5321 section 4.1.2). */
const QUOTED_ADDRESS = /<"[^"<>]{0,64}"@[^\s<>]{0,255}>/g;

/** `<someone@host.example>...` becomes `<@>...`. */
function removeAddresses(word: string): string {
  let resultText = '';
  let copiedEnd = 0;
  for (let atSignIndex = word.indexOf('@'); atSignIndex >= 0; atSignIndex = word.indexOf('@', copiedEnd)) {
    let addressStart = atSignIndex;
    while (addressStart > copiedEnd && !ENCLOSING_CHARACTERS.includes(word.charAt(addressStart - 1))) addressStart -= 1;
    let addressEnd = atSignIndex + 1;
    while (addressEnd < word.length && !ENCLOSING_CHARACTERS.includes(word.charAt(addressEnd))) addressEnd += 1;
    resultText += `${word.slice(copiedEnd, addressStart)}@`;
    copiedEnd = addressEnd;
  }
  return resultText + word.slice(copiedEnd);
}

const ENCLOSING_CHARACTERS = '<>()[]{}:;,"';

/** A phrase matches at the beginning of a word; its end may be within one (endings vary), unless it is `$`. */
export function containsPhrase(text: string, phrases: readonly string[]): boolean {
  return phrases.some((phrase) => matchesPhrase(text, phrase));
}

function matchesPhrase(text: string, phrase: string): boolean {
  const isWhole = phrase.endsWith('$');
  const words = isWhole ? phrase.slice(0, -1) : phrase;
  for (let index = text.indexOf(words); index >= 0; index = text.indexOf(words, index + words.length)) {
    if (isAsciiLetter(words.charCodeAt(0)) && isAsciiLetter(text.charCodeAt(index - 1))) continue;
    if (!isWhole || !isAsciiLetter(text.charCodeAt(index + words.length))) return true;
  }
  return false;
}

function isAsciiLetter(charCode: number): boolean {
  return charCode >= 0x61 && charCode <= 0x7a;
}
