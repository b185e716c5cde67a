/**
 * Phrases in many languages for a full mailbox and for a missing mailbox. causes.ts uses these phrases. Phrases are in
 * lower case and match at the beginning of a word, so the lists do not contain every ending.
 */
import { parsePhrases } from './phrases.ts';

/** Phrases in replies that report a full mailbox. A later attempt may succeed. */
export const MAILBOX_FULL_PHRASES: readonly string[] = parsePhrases(`
  mailbox full, mailbox is full, mailbox was full, mailbox has been full, mailbox is currently full, mailbox: full
  full mailbox, mail box full, mail box is full, mailbox is over, inbox full, inbox is full, inbox is out of
  inbox has reached, mailfolder is full, mail folder is full, account is full, account full, user is full
  storage full, mailstore full, mail storage is full, disk full, disk is full, partition full, filesystem full
  file system full, maildir is full, over quota, overquota, over-quota, over his quota, over their quota
  over its quota, over the quota, over disk quota, over the allowed quota, over the storage limit
  over the maximum allowed, above quota, quota exceeded, quota exceed, quota exceded, quota has been exceeded
  quota is exceeded, quota has exceeded, quota limit, quota violation, quota full, quota was exceeded, quota issue
  quota is full, exceeded quota, exceeded mailbox quota, exceeded storage, exceeded the quota, exceeded its quota
  exceeded his quota, exceeded their quota, exceeded his/her quota, exceeded email quota, exceeded disk quota
  exceeded its storage, exceeded the storage, exceeded his mailbox, exceeded its mailbox, exceeded the mailbox
  exceed mailbox, exceeds mailbox, exceeds quota, exceed quota, exceeding quota, exceed the quota, exceeds the quota
  exceeds its quota, exceed its quota, exceeds allowed quota, exceeds disk quota, exceeds receiver's quota
  exceed the maximum mailbox size, exceeded maximum mailbox size, exceeded allocated storage, mailbox has exceeded
  mailbox exceeded, mailbox exceeds, mailbox would exceed, mailbox has reached, mailbox size limit, mailbox limit
  mailbox storage limit, mailbox quota, mailbox space, mail box space, mailbox too large, message would exceed
  disk quota, disc quota, storage quota, insufficient disk, insufficient storage, insufficient system storage
  insufficient space, insufficient quota, not enough storage, not enough space, not enough disk, not enough room
  not enough quota, no space left, no storage space, no more space, no room in mailbox, out of storage, out of space
  out of disk, space not enough, reached its quota, reached quota, reached disk quota, reached his quota
  reached their quota, reached the quota, user has too many messages, has too much mail, too much mail data
  too many messages in mailbox, storage allocation exceeded, storage limit exceeded
  resources temporarily unavailable over quota, errno=enospc, mail quota, boîte aux lettres pleine, boîte pleine
  boite pleine, boîte de réception pleine, boîte aux lettres est pleine, boite aux lettres est pleine
  boîte de réception est pleine, messagerie pleine, messagerie est pleine, quota dépassé, dépasse le quota
  dépassé son quota, dépassement de quota, postfach voll, postfach ist voll, postfach überfüllt
  postfach des empfängers ist voll, mailbox voll, mailbox ist voll, speicherplatz, quota überschritten, speicherlimit
  kontingent, buzón lleno, buzon lleno, buzón está lleno, buzón de correo está lleno
  buzón del destinatario está lleno, cuota excedida, cuota superada, excedido su cuota, excede la cuota
  superado la cuota, caixa postal cheia, caixa postal lotada, caixa de correio cheia, caixa de entrada cheia
  caixa postal está cheia, cota excedida, quota excedida, casella piena, casella di posta piena, casella è piena
  casella di posta è piena, casella postale piena, mailbox piena, quota superata, postvak is vol, postvak vol
  postbus is vol, mailbox is vol, mailbox vol, brevlådan är full, brevlåda är full, postkassen er fuld
  postkassen er full, postboksen er full, postilaatikko on täynnä, skrzynka pełna, skrzynka jest pełna
  skrzynka odbiorcy jest pełna, przepełnion, schránka je plná, plná schránka, překročena kvóta, postafiók megtelt
  postaláda megtelt, posta kutusu dolu, kotası dol, kota aşıl, căsuța este plină, ящик переполнен, ящик заполнен
  переполнен, превышена квота, превышен размер почтового, превысил квот, скринька переповнена
  メールボックスがいっぱい, 受信トレイがいっぱい, 受信箱がいっぱい, 受信トレイの容量, 受信トレイに空き, メールボックスの容量, メールボックス容量, 容量を超え, 容量が超え, 容量オーバー, 容量超過
  空き容量, 邮箱已满, 邮箱空间不足, 邮箱空间已满, 信箱已满, 邮箱容量, 空间不足, 郵箱已滿, 信箱已滿, 信箱空間
  信箱容量, 메일함이 가득, 메일 용량, 용량 초과, 용량이 초과, תיבת הדואר מלאה, صندوق البريد ممتلئ, hộp thư đã đầy
  gelen kutusu dolu, 받은편지함이 가득, 받은편지함 용량, 收件箱已满, 收件匣已滿
`);

/** Phrases in replies that report a mailbox that does not exist. */
export const MAILBOX_MISSING_PHRASES: readonly string[] = parsePhrases(`
  user unknown, unknown user, unknown local user, unknown local-part, unknown local part, local user unknown
  unknown recipient, recipient unknown, recipients unknown, unknown mailbox, mailbox unknown, unknown address
  address unknown, addressee unknown, unknown addressee, unknown account, account unknown, unknown or illegal alias
  unknown virtual, unknown customer, unknown in virtual, unknown in local, unknown in relay, user not known
  is unknown to, is not known, is unknown, not known at this, no such user, no such mailbox, no such recipient
  no such address, no such account, no such local user, no such person, no such e-mail, no such email
  no such customer, no such alias, no such name, no such addressee, no such id, no such local, no user by that name
  no user with, no mailbox here by that name, no mailbox by that name, no mailbox for, no mailbox found
  no mailbox here, no account by that name, no account with, no local mailbox, no recipient by that name
  no one by that name, no person by that name, no valid recipient, no valid address, no matching, no matches to
  no match for, nobody by that name, invalid recipient, invalid mailbox, invalid address, invalid user
  invalid userid, invalid final delivery userid, invalid account, invalid e-mail, invalid email, invalid local part
  invalid local address, recipient invalid, user invalid, recipient is invalid, recipient address is invalid
  address is invalid, address invalid, mailbox is invalid, mailbox invalid, bad destination mailbox, bad address
  bad recipient, bad destination email, bad destination address, illegal user, illegal recipient, incorrect address
  address is incorrect, wrong address, wrong recipient, mailbox not found, mailbox does not exist
  mailbox doesn't exist, mailbox not exist, mailbox no longer, mailbox not available, mailbox is not available
  mailbox unavailable, mailbox is unavailable, mailbox has been removed, mailbox deleted, mailbox has been deleted
  mailbox is inactive, mailbox inactive, mailbox is disabled, mailbox disabled, mailbox has been disabled
  mailbox is not active, mailbox not active, mailbox is closed, mailbox closed, mailbox currently not available
  user not found, user was not found, user is not found, user cannot be found, user does not exist
  user doesn't exist, user don't exist, user not exist, user doesnt exist, user(s) account, user is inactive
  user inactive, user is no longer, user no longer, user has left, user left, user disabled, user is disabled
  user account disabled, user account is disabled, user account has, user not listed, user not local
  user is terminated, user terminated, user unavailable, user suspended, user is suspended, not a user, isn't a user
  not a local user, recipient not found, recipient was not found, recipientnotfound, recipnotfound
  recipient does not exist, recipient doesn't exist, recipient not exist, recipient no longer, recipient is not exist
  recipient name is not recognized, recipient not recognized, recipient is not recognized, recipient not known
  recipient could not be found, recipient cannot be found, recipient ok not found, recipient disabled
  not found by smtp address lookup, recipients was rejected because the address, address rejected: user
  address not found, address was not found, address is not found, address cannot be found, address couldn't be found
  address could not be found, address not recognized, address does not exist, address doesn't exist
  address not exist, address no longer, address is no longer, address has been changed, address has changed
  address is not valid, address not valid, address is not in use, address not listed, address is not listed
  address is wrong, address you entered couldn't be found, address isn't, address that does not exist
  address that doesn't exist, addresses that do not exist, account does not exist, account doesn't exist
  account not found, account was not found, account is disabled, account disabled, account has been disabled
  account has been deactivated, account has been suspended, account has been closed, account has been terminated
  account has been removed, account has been deleted, account has been discontinued, account is closed
  account closed, account is inactive, account inactive, account is not active, account not active
  account not available, account is unavailable, account unavailable, account is suspended, account suspended
  account terminated, account expired, account has expired, account deactivated, account is no longer
  account no longer, account that you tried to reach does not exist, account that you tried to reach is disabled
  account you tried to reach is, account you tried to contact does not exist, closed account, deactivated mailbox
  disabled or discontinued, inactive account, inactive user, inactive recipient, not a known user, not a valid user
  not a valid mailbox, not a valid recipient, not a valid address, not a valid account, not a valid e-mail
  not a valid email, not a valid local, is not valid at, is not a valid, isn't a valid, not a registered
  not listed in domino directory, not listed in public name, not listed in the, not in the directory
  not in directory, not in our, not unique in, not our customer, not a customer, not a member, is not a member
  does not have an account, doesn't have an account, does not have a, doesn't have a, have no account, has no account
  has no mailbox, has no such, does not exist, doesn't exist, do not exist, don't exist, no longer exists
  no longer exist, no longer in use, no longer active, no longer valid, no longer available, no longer accepts
  no longer with, no longer works, no longer employed, no longer a, is no longer, has left the company
  name not found, does not like recipient, unable to find user, unable to find recipient, could not find user
  couldn't be found at, couldn't be found or is unable, wasn't found at, wasn't found or, was not found at
  were not found, cannot find user, deleted user, discontinued, deceased, mailbox moved, has moved to
  undeliverable address, unbekannter empfänger, unbekannter benutzer, unbekannte adresse, empfänger unbekannt
  empfänger ist unbekannt, empfänger existiert nicht, empfänger nicht gefunden, empfänger wurde nicht gefunden
  empfängeradresse existiert nicht, benutzer unbekannt, benutzer existiert nicht, benutzer nicht gefunden
  adresse nicht gefunden, adresse existiert nicht, adresse ist unbekannt, adresse unbekannt, adresse ist ungültig
  ungültige adresse, ungültiger empfänger, postfach existiert nicht, postfach nicht gefunden, nicht gefunden werden
  existiert nicht, existieren nicht, ist nicht bekannt, nicht mehr gültig, nicht mehr verfügbar
  konto ist deaktiviert, konto existiert nicht, konto wurde gelöscht, mailbox existiert nicht, utilisateur inconnu
  destinataire inconnu, adresse inconnue, adresse introuvable, destinataire introuvable, adresse invalide
  n'existe pas, n'existe plus, n'est plus valide, n'est plus valable, n'a pas été trouvé, compte inexistant
  compte désactivé, boîte inexistante, non recensé, boîte inconnue, usuario desconocido, usuario inexistente
  correo inexistente, usuario no existe, destinatario desconocido, destinatario no existe, destinatario inexistente
  buzón no existe, buzón inexistente, dirección no existe, dirección desconocida, dirección inválida
  no existe el usuario, no existe, la cuenta no existe, cuenta no existe, cuenta desactivada, no se encontró
  no se ha encontrado, no se pudo encontrar, usuário desconhecido, usuário inexistente, usuário não existe
  usuário não encontrado, usuario desconhecido, destinatário desconhecido, destinatário inexistente
  destinatário não existe, destinatário não encontrado, endereço não existe, endereço inexistente, endereço inválido
  endereço não encontrado, conta não existe, conta inexistente, conta desativada, caixa postal inexistente
  não existe, não foi encontrado, nao existe, utente sconosciuto, utente inesistente, utente non trovato
  destinatario sconosciuto, destinatario inesistente, indirizzo inesistente, indirizzo sconosciuto
  indirizzo non trovato, indirizzo non valido, casella inesistente, casella non esiste, non esiste
  non è stato trovato, inesistente, onbekende gebruiker, onbekende ontvanger, gebruiker onbekend
  gebruiker bestaat niet, ontvanger onbekend, onbekend adres, adres onbekend, adres bestaat niet, bestaat niet
  niet gevonden, niet bekend, okänd användare, okänd mottagare, användaren finns inte, adressen finns inte
  finns inte, hittades inte, ukjent mottaker, ukjent bruker, finnes ikke, ukendt bruger, ukendt modtager, findes ikke
  blev ikke fundet, tuntematon vastaanottaja, tuntematon käyttäjä, ei löydy, ei löytynyt, ei ole olemassa
  nieznany użytkownik, nieznany adresat, nieznany odbiorca, adres nie istnieje, użytkownik nie istnieje
  konto nie istnieje, nie istnieje, nie znaleziono, neznámý uživatel, neznámý příjemce, uživatel neexistuje
  adresa neexistuje, schránka neexistuje, neexistuj, nebyla nalezena, ismeretlen felhasználó, ismeretlen címzett
  nem létezik, nem található, kullanıcı bulunamadı, bilinmeyen kullanıcı, böyle bir kullanıcı, alıcı bulunamadı
  mevcut değil, utilizator necunoscut, nu există, άγνωστος χρήστης, δεν υπάρχει, пользователь не найден
  пользователь не существует, пользователь неизвестен, неизвестный пользователь, получатель не найден
  получатель не существует, неизвестный получатель, нет такого пользователя, такого пользователя нет
  адрес не существует, адрес не найден, ящик не существует, ящик не найден, ящика не существует, не существует
  не найден, аккаунт заблокирован, ящик заблокирован, неизвестный адрес, не зарегистрирован, користувача не знайдено
  не існує, ユーザーが見つかりません, ユーザが見つかりません, ユーザーが存在しません, アドレスが見つかりません
  アドレスが存在しません, アドレスが間違, アドレスが正しく, 宛先不明, あて先不明, 宛先が見つかりません
  宛先が存在しません, 受信者が見つかりません, 存在しません, 存在しない, 見つかりません, 見つかりませんでした
  用户不存在, 用户名不存在, 收件人不存在, 地址不存在, 邮箱不存在, 信箱不存在, 帐号不存在, 账号不存在, 帐户不存在
  找不到收件人, 找不到用户, 未找到用户, 不存在, 用戶不存在, 使用者不存在, 帳號不存在, 地址錯誤, 地址错误, 查無此人
  无此用户, 沒有此用戶, 존재하지 않는, 존재하지 않습니다, 수신자를 찾을 수 없, 찾을 수 없습니다, 없는 사용자, לא קיים
  غير موجود, không tồn tại, tidak ditemukan, tidak ada
  adres bulunamadı, 주소를 찾을 수 없, 找不到地址, 找不到该地址, 找不到此地址, 找不到這個地址, 找不到該地址
`);
