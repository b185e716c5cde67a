/** Notifies systemd that the service is ready (`Type=notify`, sd_notify(3)). */
import { execFile } from 'node:child_process';

const MAX_WAIT_MS = 10_000;

/**
 * Runs `systemd-notify --ready` once. Resolves when systemd has received the notification. A failure causes only a
 * warning: the service runs until systemd ends it after `TimeoutStartSec`.
 */
export function notifyReady(warn: (line: string) => void): Promise<void> {
  return new Promise((resolve) => {
    // The environment variable NOTIFY_SOCKET of this process contains the path of the socket.
    execFile('systemd-notify', ['--ready', `--pid=${process.pid}`], { timeout: MAX_WAIT_MS }, (error) => {
      if (error !== null) {
        warn(
          `systemd was not notified (${error.message.trim()}); install systemd-notify, or use Type=exec in the unit`,
        );
      }
      resolve();
    });
  });
}
