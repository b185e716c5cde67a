/**
 * The limits of an account with their usage, and its bounces and complaints with the thresholds that lock the account.
 */
import type { ThresholdUsage } from '../../../src/model/account.ts';
import type { AccountDetails } from '../../../src/operations/accounts.ts';
import { Card } from '../parts/card';
import { Gauge } from '../parts/gauge';
import { formatCount, formatNumber, formatPercent } from '../parts/number';
import { RelativeTime } from '../parts/relative-time';
import { formatDuration, formatTime } from '../parts/time';

/**
 * The minimum number of messages for which the service compares rates with the thresholds. Below this number, the
 * service compares counts.
 */
const MIN_MESSAGES_FOR_RATES = 100;

export function LimitGauges({ account }: { readonly account: AccountDetails }) {
  return (
    <div className="columns halves">
      <Card title="Limits">
        <div className="gauges">
          <Volume account={account} />
          <Rate account={account} />
          <Throttle account={account} />
        </div>
        {describeOptions(account).map((text) => (
          <p className="card-note" key={text}>
            {text}
          </p>
        ))}
      </Card>
      <Card title="Bounces and complaints" secondary={`${formatCount(account.reputation.emails, 'message')} in 7 days`}>
        <div className="gauges">
          {account.reputation.thresholds.map((threshold) => (
            <Threshold key={threshold.metric} threshold={threshold} emails={account.reputation.emails} />
          ))}
        </div>
        {account.reputation.emails < MIN_MESSAGES_FOR_RATES ? (
          <p className="card-note">
            Below {MIN_MESSAGES_FOR_RATES} messages, the thresholds are counts. From {MIN_MESSAGES_FOR_RATES} messages
            on, the account {account.onReputation === 'lock' ? 'is locked' : 'gets a warning'} at{' '}
            {formatPercent(account.maxBounces)} hard bounces or {formatPercent(account.maxComplaints)} complaints.
          </p>
        ) : null}
      </Card>
    </div>
  );
}

function describeOptions({ maxAge, onlyTo, unknownFields }: AccountDetails): readonly string[] {
  return [
    ...(maxAge === null ? [] : [`Messages expire at the age of ${maxAge}.`]),
    ...(onlyTo === null ? [] : [`Sends only to ${onlyTo.join(', ')}.`]),
    ...(unknownFields === 'ignore' ? [] : ['Requests with unknown fields are refused.']),
  ];
}

function Volume({ account: { volume, volumeUsed, volumeLeft, volumeExpires } }: { readonly account: AccountDetails }) {
  const text =
    volume === null
      ? `unlimited, ${formatNumber(volumeUsed)} used`
      : `${formatNumber(volumeLeft ?? 0)} of ${formatNumber(volume)} left`;
  const usage = volume === null ? null : volume === 0 ? 1 : volumeUsed / volume;
  const isExpired = volumeExpires !== null && Date.parse(volumeExpires) <= Date.now();
  return (
    <Gauge label="Volume" text={text} usage={usage}>
      {volumeExpires === null ? (
        'Does not expire'
      ) : (
        <>
          {isExpired ? 'No message is accepted: the volume expired ' : 'Expires '}
          <RelativeTime at={volumeExpires} /> ({formatTime(volumeExpires)})
        </>
      )}
    </Gauge>
  );
}

function Rate({
  account: { rate, rateLimit, rateUsed, ratePeriodMs, rateResets },
}: {
  readonly account: AccountDetails;
}) {
  if (rateLimit === null || ratePeriodMs === null) return <Gauge label="Rate" text="no limit" usage={null} />;
  return (
    <Gauge
      label={`Rate ${rate}`}
      text={`${formatNumber(rateUsed)} of ${formatNumber(rateLimit)} used`}
      usage={rateUsed / rateLimit}
    >
      {rateResets === null ? (
        `The next message starts a period of ${formatDuration(ratePeriodMs)}.`
      ) : (
        <>
          The current period of {formatDuration(ratePeriodMs)} ends <RelativeTime at={rateResets} />
        </>
      )}
    </Gauge>
  );
}

function Throttle({ account: { throttlePerSecond, throttleBurst } }: { readonly account: AccountDetails }) {
  if (throttlePerSecond === null) return <Gauge label="Throttle" text="no limit" usage={null} />;
  return (
    <Gauge
      label="Throttle"
      text={`${formatNumber(throttlePerSecond)} per second, burst ${formatNumber(throttleBurst ?? throttlePerSecond)}`}
      usage={null}
    />
  );
}

function Threshold({
  threshold: { metric, count, limitType, limit, usage },
  emails,
}: {
  readonly threshold: ThresholdUsage;
  readonly emails: number;
}) {
  const label = metric === 'bounces' ? 'Hard bounces' : 'Complaints';
  const shareText = emails === 0 ? '' : ` (${formatPercent(count / emails)})`;
  if (limit === null) return <Gauge label={label} text={`${formatNumber(count)}${shareText}, no lock`} usage={null} />;
  const thresholdText = limitType === 'rate' ? formatPercent(limit) : formatNumber(limit);
  return <Gauge label={label} text={`${formatNumber(count)}${shareText}, locks at ${thresholdText}`} usage={usage} />;
}
